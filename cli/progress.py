"""Shows the progress of long work on one line of a terminal's standard error; without a terminal it shows nothing."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from warehouse.cli.logs import in_json
from warehouse.cli.output.visible import is_terminal, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["progress"]


@contextmanager
def progress() -> Iterator[Callable[[str], None] | None]:
    """Yield a function that shows the text of each step, or None if standard error is not a terminal."""
    if in_json() or not is_terminal(sys.stderr) or os.environ.get("TERM") == "dumb":
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.text import Text  # noqa: PLC0415

    console = Console(stderr=True, no_color=bool(os.environ.get("NO_COLOR")), highlight=False)
    with console.status(Text("starting")) as status:

        def step(text: str) -> None:
            status.update(Text(visible(text), no_wrap=True, overflow="ellipsis"))

        yield step
