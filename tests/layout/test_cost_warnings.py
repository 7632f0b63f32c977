from __future__ import annotations

import pytest

from warehouse.layout import Expiration, Insertion, resolve, warnings


def test_defaults_warn_of_nothing() -> None:
    """Default layouts of windows of any length are silent when the caller says that the grid is a default."""
    for periods in range(1, 60):
        assert warnings(resolve(periods=periods, label="WK"), grid_declared=False) == ()
    assert warnings(resolve(periods=24, label="WK")) == ()


def test_coarse_windows_warn() -> None:
    """More than p/2 declared parts of an axis warn, for each axis."""
    assert warnings(resolve(periods=8, label="WK", grid=(4, 4))) == ()
    texts = warnings(resolve(periods=8, label="WK", grid=(5, 8)))
    assert [text.split(" insertion")[0].split(" expiration")[0] for text in texts] == ["grid: G = 5", "grid: E = 8"]
    assert warnings(resolve(periods=1, label="WK", grid=(1, 1))) == ()


@pytest.mark.parametrize("insertion", ["round-robin", "chronological", "permuted"])
def test_insertion_axes_that_pile_up_runs_warn(insertion: Insertion) -> None:
    """Rows that cannot be sealed warn with the number of runs that stay (p = 36: about 108)."""
    (text,) = warnings(resolve(periods=36, label="WK", insertion=insertion))
    assert f'insertion = "{insertion}"' in text
    assert "about 108 runs" in text


@pytest.mark.parametrize("expiration", ["round-robin", "chronological", "permuted"])
def test_expiration_axes_that_scatter_blocks_warn(expiration: Expiration) -> None:
    """Columns that are not blocks warn with the runs they add."""
    (text,) = warnings(resolve(periods=36, label="WK", expiration=expiration))
    assert f'expiration = "{expiration}"' in text
    assert "up to 4 runs" in text


def test_rewritten_layouts_do_not_warn_of_assignments() -> None:
    """With rebuild every assignment is the source's own."""
    assert warnings(resolve(periods=36, label="WK", technique="rebuild", insertion="chronological")) == ()
