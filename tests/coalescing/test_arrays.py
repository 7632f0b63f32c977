"""Coalesced rows as arrays: random streams beside the model, and what is said to be stored as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.coalescing.arrays import Points, StoredArrays, moved

from .model import Model, Run

if TYPE_CHECKING:
    from collections.abc import Sequence

_POINT = st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 3))


def stored_rows(runs: Sequence[Run]) -> StoredArrays:
    """Rows of the model as arrays."""
    last = {run[0]: run[2] for run in sorted(runs, key=lambda run: run[2])}
    stamps = [stamp for run in runs for stamp in run[4]]
    return StoredArrays(
        np.array([run[0] for run in runs], np.int64),
        np.array([run[1] for run in runs], np.int64),
        np.array([run[3] for run in runs], np.int64),
        np.array([last[run[0]] == run[2] for run in runs], bool),
        np.array(stamps, np.int64),
        np.append(0, np.cumsum([len(run[4]) for run in runs])).astype(np.int64),
    )


@settings(max_examples=400, deadline=None)
@given(
    batches=st.lists(st.tuples(st.lists(_POINT, max_size=12), st.integers(0, 6)), max_size=6),
    window=st.integers(0, 20),
    draw=st.randoms(use_true_random=False),
)
def test_every_batching_gives_what_the_model_gives(
    batches: list[tuple[list[tuple[int, int, int]], int]], window: int, draw: object
) -> None:
    """Points of three groups, late and equal ones among them, while the window moves; rows are stored in any order."""
    model, now = Model(window=window), 0
    for batch, step in batches:
        now += step
        before = model.table()
        draw.shuffle(before)  # type: ignore[attr-defined] - of random
        stored_keys = {(group, stamp) for group, _, _, _, stamps in before for stamp in stamps}
        model.arrive(batch, now)
        stored = stored_rows(before)
        least = sorted(batch, key=lambda point: point[2])
        group, at, value = (np.array([point[index] for point in least], np.int64) for index in range(3))
        result = moved(stored, Points(group, value, at), now - window)
        values = np.concatenate((stored.value, value))
        new_rows = result.rows
        rows = [
            (int(g), int(values[s]), int(new_rows.stamps[b]), int(end), tuple(new_rows.stamps[b : b + n].tolist()))
            for g, s, b, n, end in zip(new_rows.group, new_rows.source, new_rows.begin, new_rows.size, result.ends, strict=True)
        ]
        assert rows == model.table()
        last = {row[0]: row[2] for row in rows}
        assert [last[row[0]] == row[2] for row in rows] == result.open.tolist()
        was = set(zip(before, stored.open.tolist(), strict=True))
        assert result.same.tolist() == [row_and_open in was for row_and_open in zip(rows, result.open.tolist(), strict=True)]
        inside = [point for point in batch if point[1] >= now - window]
        new = {(point[0], point[1]) for point in inside} - stored_keys
        assert (result.late, result.repeated) == (len(batch) - len(inside), len(inside) - len(new))
