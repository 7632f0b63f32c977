"""What key summaries say of a join: the pairs of its tables, or the most if it takes only some of their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from warehouse.promise.summaries import KeySummary
from warehouse.serving import view_figures
from warehouse.serving.join_sizes import JoinedKeys
from warehouse.serving.view_figures import keys_of_join
from warehouse.views.algebra import Equality, Filter, Join, Named, Project, Scan, TimeWindow

if TYPE_CHECKING:
    from warehouse.serving.reader import Reader
    from warehouse.views.algebra import Operator

ROWS = KeySummary(5, {("a",): 3, ("b",): 2})
PLAIN = Scan("a")


@pytest.fixture(autouse=True)
def _known_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def known(*_: Any) -> JoinedKeys:  # noqa: ANN401
        return JoinedKeys(ROWS, ROWS, every=True)

    monkeypatch.setattr(view_figures, "joined_keys", known)


def pairs(left: Operator, where: str | None = None) -> tuple[int, int]:
    """Return the pairs of a join of an input with all rows of a table."""
    result = keys_of_join(cast("Reader", None), Join((left, Scan("b")), (Equality(0, "k", 1, "k"),), where))
    assert result is not None
    return result.pairs


def test_pairs_are_exact_only_of_a_join_of_every_row() -> None:
    """Conditions and windows leave rows out, which summaries count."""
    assert pairs(PLAIN) == pairs(Project(PLAIN, (Named("k", "`k`"),))) == (13, 13)
    assert pairs(Filter(PLAIN, "`k` > 'a'")) == pairs(TimeWindow(PLAIN, 9)) == pairs(PLAIN, "`k` > 'a'") == (0, 13)
    assert pairs(Project(Filter(PLAIN, "`v` = 1"), (Named("k", "`k`"),))) == (0, 13)


def test_nulls_that_equal_nulls_are_not_counted() -> None:
    """So nothing is said of such a join."""
    join = Join((PLAIN, Scan("b")), (Equality(0, "k", 1, "k"),), null_safe=True)
    assert keys_of_join(cast("Reader", None), join) is None
