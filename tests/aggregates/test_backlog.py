"""Which answers come first when there is not the time for all of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from warehouse.aggregates.backlog import rounds
from warehouse.aggregates.definition import Due

dues = st.lists(
    st.builds(Due, st.sampled_from(["1h", "1d"]), st.just(1), st.integers(1, 6), st.integers(0, 3)),
    unique_by=lambda due: (due.text, due.end),
    max_size=8,
)
backlogs = st.dictionaries(st.sampled_from("abcd"), dues, max_size=4)


@given(backlogs)
def test_every_answer_is_given_once_and_the_newest_of_each_window_first(waiting: dict[str, list[Due]]) -> None:
    """Rounds are of one group each; the group with the latest window is first, older ends come newest first."""
    groups = {"a": "x", "b": "x", "c": "y", "d": "z"}
    answered = list(rounds(waiting, groups))
    given_dues = [(name, due) for answers in answered for name, current in answers for due in current]
    assert sorted(given_dues, key=repr) == sorted(((name, due) for name, all_ in waiting.items() for due in all_), key=repr)
    assert all(len({groups[name] for name, _ in answers}) == 1 for answers in answered)
    newest = {(name, due.text): max(d.end for d in all_ if d.text == due.text) for name, all_ in waiting.items() for due in all_}
    first = [
        answers for answers in answered if any(due.end == newest[name, due.text] for name, current in answers for due in current)
    ]
    assert answered[: len(first)] == first, "no older end comes before the newest of another window"
    late = [max(due.late for name, _ in answers for due in waiting[name]) for answers in first]
    assert late == sorted(late, reverse=True)
    ends = [max(due.end for _, current in answers for due in current) for answers in answered[len(first) :]]
    assert ends == sorted(ends, reverse=True)
