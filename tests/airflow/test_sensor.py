"""The wait for landing files, in a worker and in the triggerer."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk._shared.module_loading import import_string
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskDeferred

from airflow_stream_wh import StreamWarehouseLandingSensor

if TYPE_CHECKING:
    from .fake import Fake

NOW = datetime.now(UTC).replace(microsecond=0)
PAST = datetime(2024, 1, 1, 5, tzinfo=UTC)


def sensor(fake: Fake, **options: Any) -> StreamWarehouseLandingSensor:
    """Return a wait for cars."""
    chosen = {"expect": ["cars"], "poke_interval": 0.05, **options}
    return StreamWarehouseLandingSensor(task_id="wait", project=str(fake.project), executable=fake.executable, **chosen)


def deferred(task: StreamWarehouseLandingSensor, at: datetime = NOW) -> Any:
    """Run a task until it defers and return its trigger, as the triggerer makes it."""
    with pytest.raises(TaskDeferred) as raised:
        task.execute({"data_interval_end": at})  # type: ignore[typeddict-item]
    assert raised.value.method_name == "execute_complete"
    path, fields = raised.value.trigger.serialize()
    return import_string(path)(**fields)


def fired(trigger: Any) -> dict[str, Any]:
    """Run a trigger until it fires."""

    async def first() -> Any:
        async for event in trigger.run():
            return event.payload
        raise AssertionError

    return dict(asyncio.run(asyncio.wait_for(first(), 30)))


def test_a_file_that_is_there_needs_no_wait(fake: Fake) -> None:
    """Nothing is deferred."""
    fake.stands("2024-01-01T04:00:00Z", 3)
    fake.waits(cars=1)
    sensor(fake).execute({"data_interval_end": NOW})  # type: ignore[typeddict-item]


def test_the_trigger_fires_when_a_file_lands(fake: Fake) -> None:
    """It looks again and again, as the warehouse sees it."""
    fake.stands("2024-01-01T04:00:00Z", 3)
    fake.waits(cars=0)
    task = sensor(fake)
    trigger = deferred(task)
    for count in (0, 0, 2):
        fake.answers("status", [{"table": "cars", "live_rows": 0, "waiting_files": count}])
    event = fired(trigger)
    assert event == {"missing": []}
    task.execute_complete({}, event)
    assert len([call for call in fake.calls if call[0] == "status"]) >= 4


def test_the_wait_ends_at_the_deadline(fake: Fake) -> None:
    """Patience counts from T; rows expire without new ones, so by default the update goes on."""
    fake.stands("2024-01-01T04:00:00Z", 3)
    fake.waits(cars=0)
    began = time.time()
    patience = timedelta(seconds=2) + (datetime.now(UTC) - NOW)
    task = sensor(fake, patience=patience)
    event = fired(deferred(task))
    assert event == {"missing": ["cars"]}
    assert time.time() - began >= 1
    task.execute_complete({}, event)


def test_a_wait_in_vain_may_skip_or_fail(fake: Fake) -> None:
    """As the DAG's author decides."""
    fake.stands("2023-12-31T04:00:00Z", 3)
    fake.waits(cars=0)
    sensor(fake).execute({"data_interval_end": PAST})  # type: ignore[typeddict-item]
    for choice, kind in (("skip", AirflowSkipException), ("fail", AirflowFailException)):
        with pytest.raises(kind, match="no file has landed for cars"):
            sensor(fake, at_deadline=choice).execute({"data_interval_end": PAST})  # type: ignore[typeddict-item]
        with pytest.raises(kind, match="no file has landed for cars"):
            sensor(fake, at_deadline=choice).execute_complete({}, {"missing": ["cars"]})
    with pytest.raises(ValueError, match="at_deadline"):
        sensor(fake, at_deadline="wait")


def test_a_run_of_the_past_does_not_wait(fake: Fake) -> None:
    """A backfill looks once and goes on."""
    fake.stands("2023-12-31T04:00:00Z", 3)
    fake.waits(cars=0)
    sensor(fake).execute({"data_interval_end": PAST})  # type: ignore[typeddict-item]
    assert [call[0] for call in fake.calls] == ["history", "status"]


def test_what_cannot_be_waited_for_fails_at_once(fake: Fake) -> None:
    """A wrong name before the wait, a broken warehouse in the middle of it, a run without a date."""
    fake.stands("2024-01-01T04:00:00Z", 3)
    fake.waits(cars=0)
    with pytest.raises(AirflowFailException, match='"trucks"'):
        sensor(fake, expect={"trucks": None}).execute({"data_interval_end": NOW})  # type: ignore[typeddict-item]
    with pytest.raises(AirflowFailException, match="no update time"):
        sensor(fake).execute({})
    task = sensor(fake)
    trigger = deferred(task)
    fake.fails("status", 1, "record_damaged", "broken")
    with pytest.raises(AirflowFailException, match="broken"):
        task.execute_complete({}, fired(trigger))


def test_a_busy_store_is_looked_at_again(fake: Fake) -> None:
    """What passes ends no wait."""
    fake.stands("2024-01-01T04:00:00Z", 3)
    fake.waits(cars=0)
    trigger = deferred(sensor(fake))
    fake.fails("status", 3, "epoch_vacuumed", "gone", retry=True)
    fake.answers("status", [{"table": "cars", "live_rows": 0, "waiting_files": 1}])
    assert fired(trigger) == {"missing": []}


def test_without_a_triggerer_it_pokes(fake: Fake) -> None:
    """The same looks, from a worker."""
    fake.stands("2024-01-01T04:00:00Z", 3)
    fake.waits(cars=0)
    fake.answers("status", [{"table": "cars", "live_rows": 0, "waiting_files": 1}])
    sensor(fake, deferrable=False).execute({"data_interval_end": NOW})  # type: ignore[typeddict-item]
    assert [call[0] for call in fake.calls] == ["history", "status"] * 2
