"""Damage done to a data file, region by region: bytes flipped, zeroed, cut off.

A Parquet file as Spark writes it::

    PAR1 | page header, page | ... | Bloom filters, indexes | footer | its length, PAR1
    magic  header       page         tail                     footer   end
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from warehouse.storage.fingerprint import tail_start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from random import Random

__all__ = ["Damage", "damages", "regions"]

_HEADER = 24
"""Bytes at the beginning of a page that are taken for its header."""
_ZEROED = 512


@dataclass(frozen=True)
class Damage:
    """The region, the kind of the damage, and the bytes of the damaged file."""

    region: str
    kind: str
    content: bytes


def regions(file: Path) -> dict[str, list[range]]:
    """Return where the regions of a Parquet file are."""
    size, footer = file.stat().st_size, pq.read_metadata(file)
    end = size - 8
    begin = end - footer.serialized_size
    ranges: dict[str, list[range]] = {"magic": [range(4)], "header": [], "page": []}
    for group in range(footer.num_row_groups):
        for number in range(footer.num_columns):
            chunk = footer.row_group(group).column(number)
            first = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
            ranges["header"].append(range(first, first + _HEADER))
            ranges["page"].append(range(first + _HEADER, first + chunk.total_compressed_size))
    ranges["tail"] = [range(tail_start(file), begin)]
    ranges["footer"] = [range(begin, end)]
    ranges["end"] = [range(end, size)]
    return {name: [span for span in spans if span] for name, spans in ranges.items()}


def damages(file: Path, random: Random, each: int) -> Iterator[Damage]:
    """Yield damaged contents of a whole file: ``each`` contents of every kind in every region."""
    whole = file.read_bytes()
    for region, spans in regions(file).items():
        for _ in range(each if spans else 0):
            offset = random.choice(random.choice(spans))
            flipped = bytearray(whole)
            flipped[offset] ^= 1 << random.randrange(8)
            yield Damage(region, "flipped", bytes(flipped))
            zeroed, behind = whole[offset : offset + _ZEROED], whole[offset + _ZEROED :]
            if any(zeroed):
                yield Damage(region, "zeroed", whole[:offset] + bytes(len(zeroed)) + behind)
            yield Damage(region, "cut", whole[:offset])
