"""A sensor that waits for landing files: until they are there, or until some time after T."""

from __future__ import annotations

import time
from datetime import timedelta
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_stream_wh.operators import raise_for_airflow
from airflow_stream_wh.process import default_executable
from airflow_stream_wh.triggers import LandingTrigger
from airflow_stream_wh.update_time import update_time
from airflow_stream_wh.waiting import ExpectedFiles, expected_files, missing_tables
from warehouse.errors import WarehouseError
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from airflow.sdk import Context

__all__ = ["StreamWarehouseLandingSensor"]

_MICROSECOND = timedelta(microseconds=1)


class StreamWarehouseLandingSensor(BaseSensorOperator):
    """Waits until files of this run have landed, but no longer than ``patience`` after T.

    Rows expire even if no new ones land, so by default the wait ends with success at T + ``patience``, and the log names the
    tables whose files are missing. A run does not wait if T + ``patience`` is past, as in a backfill, or if its windows are
    already at T. T is that of :class:`~airflow_stream_wh.operators.StreamWarehouseUpdateOperator`; the wall clock only ends the
    wait.

    Parameters
    ----------
    project, executable, env, at
        As in :class:`~airflow_stream_wh.operators.StreamWarehouseUpdateOperator`; if the wait is deferred, the triggerer must
        see the project, too.
    expect
        For each stream or relation a glob on the names of its landing files (on the relative path when it has a slash), such
        as ``{"flights": "{{ data_interval_start.strftime('%Y-%m-%dT%H') }}*.csv.gz"}``; or a list of tables: any file of
        theirs that is not loaded yet.
    patience
        How long after T to wait.
    at_deadline
        What happens if files are missing at the deadline: ``proceed``, ``skip`` (this task and those after it) or ``fail``.
    deferrable
        Wait in the triggerer; else in a worker, by ``mode`` of :class:`airflow.sdk.BaseSensorOperator`.

    """

    template_fields: Sequence[str] = ("project", "executable", "env", "expect", "at")

    def __init__(
        self,
        *,
        project: str | PathLike[str],
        expect: Mapping[str, str | None] | Sequence[str],
        patience: timedelta = timedelta(minutes=15),
        at: str | datetime | None = None,
        at_deadline: Literal["proceed", "skip", "fail"] = "proceed",
        executable: str | None = None,
        env: Mapping[str, str] | None = None,
        deferrable: bool = True,
        **kwargs: Any,  # noqa: ANN401 - passed on
    ) -> None:
        if at_deadline not in ("proceed", "skip", "fail"):
            raise ValueError(f'at_deadline is "{at_deadline}"; it is "proceed", "skip" or "fail"')
        super().__init__(**kwargs)
        self.project = fspath(project)
        self.expect = expect
        self.patience = patience
        self.at = at
        self.at_deadline = at_deadline
        self.executable = executable
        self.env = dict(env or {})
        self.deferrable = deferrable

    def execute(self, context: Context) -> None:
        """Check once, then defer; or wait in the worker."""
        if not self.deferrable:
            super().execute(context)
            return
        expected, deadline = self._expected(context)
        if not self._is_over(expected, deadline):
            trigger = LandingTrigger(expected.to_json(), deadline, self.poke_interval)
            self.defer(trigger=trigger, method_name="execute_complete")

    def poke(self, context: Context) -> bool:
        """Return whether the wait is over."""
        return self._is_over(*self._expected(context))

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> None:
        """End the wait after the trigger has fired."""
        del context
        if "error" in event:
            raise AirflowFailException(event["error"])
        self._end_wait(tuple(event["missing"]))

    def _expected(self, context: Context) -> tuple[ExpectedFiles, int]:
        try:
            at, source = update_time(self.at, context)
            executable = self.executable or default_executable()
        except WarehouseError as error:
            raise_for_airflow(error)
        deadline = at + self.patience // _MICROSECOND
        self.log.info("waiting for T = %s, from %s, until %s", format_instant(at), source, format_instant(deadline))
        return ExpectedFiles(executable, self.project, self.env, expected_files(self.expect), at), deadline

    def _is_over(self, expected: ExpectedFiles, deadline: int) -> bool:
        clock = time.time_ns() // 1000
        try:
            missing = missing_tables(expected, clock)
        except WarehouseError as error:
            raise_for_airflow(error)
        if missing and clock < deadline:
            self.log.info("no file yet for %s", ", ".join(missing))
            return False
        self._end_wait(missing)
        return True

    def _end_wait(self, missing: Sequence[str]) -> None:
        if not missing:
            self.log.info("nothing is missing")
            return
        text = f"no file has landed for {', '.join(missing)} by the deadline, {self.patience} after T"
        match self.at_deadline:
            case "proceed":
                self.log.warning("%s; going on without: rows expire all the same", text)
            case "skip":
                raise AirflowSkipException(text)
            case "fail":
                raise AirflowFailException(f"{text}; look why, then clear this task")
