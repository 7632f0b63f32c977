"""The way back from what is known of landing files now to what was known then, as an epoch records it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from warehouse.ingest.files import LandingFile, LeftOut
from warehouse.ingest.landing import Known
from warehouse.updates.known import _summed
from warehouse.updates.records import Loaded
from warehouse.updates.rollback import _difference

PATHS = ("a", "b", "c")
FILES = st.builds(LandingFile, st.sampled_from(PATHS), st.integers(1, 2), st.just(0))
ENTRIES = st.builds(
    Loaded,
    st.just("s"),
    loaded=st.lists(FILES, max_size=2).map(tuple),
    left_out=st.lists(st.builds(LeftOut, FILES, st.just("reason"), st.just("")), max_size=2).map(tuple),
    reload=st.lists(st.sampled_from(PATHS), max_size=1).map(tuple),
    gone=st.lists(st.sampled_from(PATHS), max_size=1).map(tuple),
)


@given(st.lists(ENTRIES, max_size=4), st.lists(ENTRIES, max_size=4))
def test_after_the_difference_is_recorded_all_is_known_as_before(before: list[Loaded], since: list[Loaded]) -> None:
    """Whatever was loaded, left out, marked or gone in between."""
    nothing = Known({}, {})
    then = _summed([before]).get("s", nothing)
    now = _summed([before, since]).get("s", nothing)
    back = _summed([before, since, [_difference("s", now, then)]])["s"]
    assert (dict(back.loaded), dict(back.left_out), back.reload) == (dict(then.loaded), dict(then.left_out), then.reload)
