from __future__ import annotations

from tests.serving.conftest import house, own, reader

__all__ = ["house", "own", "reader"]
