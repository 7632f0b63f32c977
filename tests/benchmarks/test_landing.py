"""The benchmark of known landing files compares real ledgers with a listing in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.landing import listing, measure
from warehouse.ingest.loaded_files import order

if TYPE_CHECKING:
    from pathlib import Path


def test_all_files_of_the_listing_are_known(tmp_path: Path) -> None:
    """The listing lacks only the files that the measured updates added to the ledger; more than one shard is compared."""
    names = [path for path, _, _ in listing(5000)]
    assert names == sorted(names, key=order)
    spent = measure(tmp_path, 5000, 3)
    assert (spent.found.new, spent.found.changed, len(spent.besides)) == ((), (), 3)
    assert spent.found.gone == ("3000/2.csv", "3000/3.csv", "3000/4.csv")
    assert len([*(tmp_path / "ledger").iterdir()]) > 1
