"""The update pattern of a stream, by its ``expires`` expression."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from warehouse.catalog.model import label_of
from warehouse.views.labels import WK, Label
from warehouse.views.language.intervals import interval_of

if TYPE_CHECKING:
    from warehouse.catalog.model import Stream

__all__ = ["stream_label"]

_CONSTANT = re.compile(r"ts\s*\+\s*(interval\b.*)", re.IGNORECASE | re.DOTALL)


def stream_label(stream: Stream) -> Label:
    """Return a stream's label as a leaf; a constant that is no day-time interval makes it WK, which is always safe."""
    kind = label_of(stream.expires)
    if kind != "WKS":
        return Label(kind)
    match = _CONSTANT.fullmatch((stream.expires or "").strip())
    constant = interval_of(match[1]) if match else None
    return WK if constant is None else Label("WKS", constant)
