"""Operators: each runs one verb of ``stream-wh`` as a process, and succeeds, fails or is retried by its exit code."""

from __future__ import annotations

import json
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_stream_wh.assets import event_extra, table_assets
from airflow_stream_wh.links import ReportLink
from airflow_stream_wh.messages import AS_JSON, message_of
from airflow_stream_wh.process import CommandResult, RunningCommand, default_executable, running_command
from airflow_stream_wh.state import current_tables, newest_epoch
from airflow_stream_wh.update_time import update_time
from airflow_stream_wh.verdict import TaskOutcome, faults_of, health_of, judge, record_of, table_lines
from warehouse.errors import Transient, WarehouseError
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from airflow.sdk import Context

    from airflow_stream_wh.state import NewestEpoch
    from airflow_stream_wh.verdict import Judgement

__all__ = [
    "StreamWarehouseCheckOperator",
    "StreamWarehouseOperator",
    "StreamWarehouseUpdateOperator",
    "StreamWarehouseVacuumOperator",
    "raise_for_airflow",
]


def raise_for_airflow(error: WarehouseError) -> NoReturn:
    """Raise the exception that Airflow retries for a transient error, and the one that fails the task for any other error."""
    kind = AirflowException if isinstance(error, Transient) else AirflowFailException
    raise kind(str(error)) from error


class StreamWarehouseOperator(BaseOperator):
    """Runs a verb of the command line for one project.

    Parameters
    ----------
    project
        The directory with ``warehouse.toml``, as the worker sees it.
    executable
        The ``stream-wh`` to run, of any environment; left out: the one of this Python's environment, else the one on the path.
    env
        Environment variables for it in addition to the worker's, such as ``JAVA_HOME``.

    """

    template_fields: Sequence[str] = ("project", "executable", "env")

    def __init__(
        self, *, project: str | PathLike[str], executable: str | None = None, env: Mapping[str, str] | None = None, **kwargs: Any  # noqa: ANN401
    ) -> None:
        super().__init__(**kwargs)
        self.project = fspath(project)
        self.executable = executable
        self.env = dict(env or {})
        self._running: RunningCommand | None = None

    @property
    def _line(self) -> tuple[str, ...]:
        return (self.executable or default_executable(), "-C", self.project)

    def run_verb(self, *arguments: str) -> CommandResult:
        """Run a verb and return its result; its standard error goes to the task's log, and it stops when the task stops."""
        line = (*self._line, *arguments)
        self.log.info("running %s", " ".join(line))
        with running_command(line, {**AS_JSON, **self.env}) as running:
            self._running = running
            return running.wait(self._log_line)

    def _log_line(self, line: str) -> None:
        """Log a line of the command's standard error."""
        message = message_of(line)
        self.log.log(message.level, "%s", message.text)

    def on_kill(self) -> None:
        """Interrupt the command; what an update had begun is completed by the next one."""
        if self._running is not None:
            self._running.stop()


class StreamWarehouseUpdateOperator(StreamWarehouseOperator):
    """Moves every window of a warehouse to the last grid point at or before T.

    T is ``at``, else the run's ``partition_date``, else its ``data_interval_end``, else its ``logical_date``, else an error. It
    is never the wall clock, so that a retry, a backfill and a cleared task have the T of the first try. What was loaded is not
    loaded again: a task that runs twice changes nothing the second time.

    A held lock, a busy store, and an interrupted or killed process fail the try (``AirflowException``): Airflow retries, and the
    next try completes what was begun. Everything else fails the task at once (``AirflowFailException``).

    Returns ``{"window_time", "epoch", "moved", "health", "tables": {table: event}}`` as XCom.

    Parameters
    ----------
    project, executable, env
        As in :class:`StreamWarehouseOperator`.
    at
        T, if it is not the run's date; ISO 8601 or a datetime. An empty text counts as left out.
    each, start, allow_dead, future
        The options ``--each``, ``--from``, ``--allow-dead`` and ``--future`` of ``stream-wh update``.
    on_problems
        When a committed update fails the task, without an asset event: ``broken``: if the warehouse's health is broken, for
        example if a view stands still; ``fail``: if anything needs a person, for example an unreadable landing file; ``warn``:
        never. Problems that do not fail the task are warnings in its log.
    report, report_url
        The file into which the warehouse's report is written after each committed update, also if its health fails the task (a
        relative path starts at the project), and the address at which people read it. The task's button "Report" opens the
        address, or without one the file. A report that cannot be written is a warning.
    tables, warehouse
        Which tables have assets (left out: all that ``warehouse.toml`` declares, read when the DAG is parsed), and the
        name of the warehouse in them (left out: the project directory's).

    """

    template_fields: Sequence[str] = (*StreamWarehouseOperator.template_fields, "at", "start", "report", "report_url")

    def __init__(
        self,
        *,
        project: str | PathLike[str],
        at: str | datetime | None = None,
        each: bool = False,
        start: str | None = None,
        allow_dead: bool = False,
        future: bool = False,
        on_problems: Literal["broken", "fail", "warn"] = "broken",
        report: str | PathLike[str] | None = None,
        report_url: str | None = None,
        tables: Sequence[str] | None = None,
        warehouse: str | None = None,
        **kwargs: Any,  # noqa: ANN401 - passed on
    ) -> None:
        if on_problems not in ("broken", "fail", "warn"):
            raise ValueError(f'on_problems is "{on_problems}"; it is "broken", "fail" or "warn"')
        assets = table_assets(fspath(project), tables, warehouse)
        super().__init__(project=project, outlets=[*kwargs.pop("outlets", ()), *assets], **kwargs)
        self.at = at
        self.each = each
        self.start = start
        self.allow_dead = allow_dead
        self.future = future
        self.on_problems = on_problems
        self.report = None if report is None else fspath(report)
        self.report_url = report_url
        self.operator_extra_links = (ReportLink(),) if report or report_url else ()
        self.table_assets = assets

    def execute(self, context: Context) -> dict[str, Any]:
        """Update the warehouse, and return the state of each table."""
        try:
            at, source = update_time(self.at, context)
            self.log.info("update time %s, from %s", format_instant(at), source)
            ended = self.run_verb("update", "--at", format_instant(at), "-o", "json", *self._options())
            record = self._record(ended)
            return self._result(context, at, record)
        except WarehouseError as error:
            raise_for_airflow(error)

    def _options(self) -> tuple[str, ...]:
        flags = {"--each": self.each, "--allow-dead": self.allow_dead, "--future": self.future}
        start = ("--from", self.start) if self.start else ()
        return (*(flag for flag, on in flags.items() if on), *start)

    def _record(self, ended: CommandResult) -> dict[str, Any]:
        """Return the update's record, or raise the exception that its exit code means."""
        judgement = judge(ended)
        record = record_of(ended)
        for warning in record.get("warnings", ()):
            self.log.warning("%s", warning)
        match judgement.verdict:
            case TaskOutcome.RETRY:
                raise AirflowException(judgement.reason)
            case TaskOutcome.FAIL:
                raise AirflowFailException(judgement.reason)
            case TaskOutcome.PROBLEMS | TaskOutcome.DONE:
                self._write_report()
                self._log_result(record, judgement)
        return record

    def _write_report(self) -> None:
        """Write the report, if there is one; the update is committed even if that fails."""
        if self.report is None:
            return
        ended = self.run_verb("report", "--output-file", str(Path(self.project, self.report).absolute()))
        if ended.code:
            self.log.warning("the report was not written: %s", judge(ended).reason)

    def _log_result(self, record: Mapping[str, Any], judgement: Judgement) -> None:
        """Log the changes of each table and each concern; fail the task if ``on_problems`` says so."""
        for epoch in (*record["completed"], *record["epochs"]):
            for line in table_lines(epoch):
                self.log.info("%s", line)
        health = health_of(record)
        for line in health.concerns:
            self.log.warning("%s", line)
        problems = judgement.verdict is TaskOutcome.PROBLEMS
        if self.on_problems == "fail" and (problems or health.level != "ok"):
            raise AirflowFailException(judgement.reason if problems else health.reason)
        if self.on_problems == "broken" and health.level == "broken":
            raise AirflowFailException(health.reason)
        if problems:
            self.log.warning("%s", judgement.reason)

    def _result(self, context: Context, at: int, record: Mapping[str, Any]) -> dict[str, Any]:
        epochs = (*record["completed"], *record["epochs"])
        state = newest_epoch(self._line, self.env)
        if state is None:
            self.log.warning("nothing has been committed yet: there was nothing to do")
            return {"window_time": None, "epoch": None, "moved": False, "health": None, "tables": {}}
        if not epochs:
            self._log_no_move(at, state)
        tables = current_tables(self._line, self.env)
        events = {name: event_extra(table, state, epochs, name) for name, table in tables.items()}
        for asset in self.table_assets:
            name = asset.name.rpartition("/")[2]
            if name in events:
                context["outlet_events"][asset].extra = events[name]
            else:
                self.log.warning('table "%s" is not in epoch %s; its asset event says nothing of it', name, state.epoch)
        summary = {"window_time": format_instant(state.window_time), "epoch": state.epoch, "moved": bool(epochs)}
        summary["health"] = health_of(record).level
        self.log.info("%s", summary)
        return {**summary, "tables": events}

    def _log_no_move(self, at: int, state: NewestEpoch) -> None:
        now = format_instant(state.window_time)
        if state.window_time > at:
            self.log.warning(
                "the window is already at %s (epoch %s), past this task's update time %s: nothing was done. Windows move "
                "forward only; what was loaded wrongly is corrected by `stream-wh restate TABLE`, not by clearing past tasks",
                now, state.epoch, format_instant(at),
            )
        else:
            self.log.info("the windows are already at %s (epoch %s): nothing to do", now, state.epoch)


class StreamWarehouseVerb(StreamWarehouseOperator):
    """Runs a verb that writes JSON, and succeeds, fails or is retried by its exit code."""

    @property
    def verb(self) -> tuple[str, ...]:
        """The verb and its options."""
        raise NotImplementedError

    def execute(self, context: Context) -> Any:  # noqa: ANN401 - the JSON of the verb
        """Run the verb and return its JSON."""
        del context
        try:
            ended = self.run_verb(*self.verb, "-o", "json")
        except WarehouseError as error:
            raise_for_airflow(error)
        judgement = judge(ended)
        match judgement.verdict:
            case TaskOutcome.DONE:
                self.log.info("%s", ended.output.strip())
                return json.loads(ended.output)
            case TaskOutcome.RETRY:
                raise AirflowException(judgement.reason)
            case TaskOutcome.FAIL | TaskOutcome.PROBLEMS:
                self.log.error("%s", ended.output.strip())
                raise AirflowFailException(faults_of(ended) or judgement.reason)


class StreamWarehouseCheckOperator(StreamWarehouseVerb):
    """Verifies a warehouse with ``stream-wh check``; faults (exit code 4) fail the task at once, and are listed in the error.

    Parameters
    ----------
    project, executable, env
        As in :class:`StreamWarehouseOperator`.
    quick
        Look at sizes and footers of files instead of reading every row.

    """

    def __init__(self, *, project: str | PathLike[str], quick: bool = False, **kwargs: Any) -> None:  # noqa: ANN401 - passed on
        super().__init__(project=project, **kwargs)
        self.quick = quick

    @property
    def verb(self) -> tuple[str, ...]:
        """The verb and its options."""
        return ("check", "--quick") if self.quick else ("check",)


class StreamWarehouseVacuumOperator(StreamWarehouseVerb):
    """Removes the files that no readable epoch needs, with ``stream-wh vacuum``; a running update makes it try again."""

    @property
    def verb(self) -> tuple[str, ...]:
        """The verb."""
        return ("vacuum",)
