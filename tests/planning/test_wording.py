"""Steps and tables in words: every kind of step has some."""

from __future__ import annotations

from typing import get_args

import pytest

from warehouse.planning.steps import Step
from warehouse.planning.wording import STEP_WORDS, step_text, table_text


def test_every_step_has_words() -> None:
    """A new kind of step fails here until it has words for people."""
    assert set(STEP_WORDS) == {kind.__struct_config__.tag for kind in get_args(Step)}


@pytest.mark.parametrize("text", ["elsewhere/flights", "a: b: c", "plan, and write the records", "tables/a: unknown-tag"])
def test_what_is_not_known_stays_as_it_is(text: str) -> None:
    """Records of other builds may have other names."""
    assert (step_text(text), table_text(text)) == (text, text) if "tables" not in text else step_text(text) == text
