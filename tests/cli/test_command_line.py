"""The entry point: help, exit codes, errors, pipes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import click
import pytest

from warehouse.cli import errors
from warehouse.cli.errors import CANCELLED
from warehouse.cli.main import COMMANDS, stream_wh
from warehouse.errors import LockHeldError, Problem, UnknownNameError, UnreadableFilesError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ended

HEAVY = ("rich", "pydantic", "pyspark", "sqlglot", "pyarrow", "pandas", "duckdb", "deltalake", "numpy")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Make `tables` end with an error."""

    def fail(error: BaseException) -> None:
        def tables(directory: Path) -> object:  # noqa: ARG001 - stands in for a function of that shape
            raise error

        monkeypatch.setattr("warehouse.cli.inspection.tables", tables)

    return fail


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_opens_with_an_example(name: str, invoke: Callable[..., Ended]) -> None:
    """The first thing that help shows is how the command is used."""
    ended = invoke(*name.split(), "--help")
    assert ended.code == 0
    first, second = ended.out.splitlines()[:2]
    assert first in ("Example:", "Examples:")
    assert second.startswith(f"  $ stream-wh {name}".rstrip())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_described(name: str) -> None:
    """A command has a summary and a text, an option has help."""
    command = stream_wh.get_command(click.Context(stream_wh), name)
    assert command is not None
    assert command.name == name
    assert command.short_help
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


def test_examples_parse() -> None:
    """Every option that an example uses exists."""
    for name in COMMANDS:
        command: Any = stream_wh.get_command(click.Context(stream_wh), name)
        options = {option for parameter in command.params for option in parameter.opts}
        for example in command.examples:
            line = example.split("|", maxsplit=1)[0]
            assert {word for word in line.split() if word.startswith("--")} <= options, example


def test_the_real_entry_point_starts(stream_wh: Callable[..., Ended]) -> None:
    """The installed command shows help, version and usage errors with the documented exit codes."""
    assert "probe" in stream_wh("--help").out
    unknown = stream_wh("prove")
    assert (unknown.code, unknown.out) == (2, "")
    assert "No such command" in unknown.err
    assert "No such command 'staus'; did you mean 'status'? See `stream-wh --help`" in stream_wh("staus").err
    assert stream_wh("probe").code == 2
    assert stream_wh("-C", "no/such/directory", "status").code == 2


def test_starting_imports_nothing_heavy(environment: dict[str, str]) -> None:
    """Help of a reading command imports neither the engine nor the libraries of other commands."""
    code = "import sys; from warehouse.cli.main import run; run(['probe', '--help']); print(*sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert not set(process.stdout.splitlines()[-1].split()) & set(HEAVY)


def test_a_missing_project_says_what_to_do(tmp_path: Path, stream_wh: Callable[..., Ended]) -> None:
    """Without a warehouse.toml a reading command and an update end with exit code 2 and one text."""
    for arguments in (["status"], ["probe", "flights", "N1"], ["validate"]):
        ended = stream_wh("-C", str(tmp_path), *arguments)
        assert ended.code == 2, ended.err
        assert ended.out == ""
        assert "warehouse.toml" in ended.err
        assert "Traceback" not in ended.err


def test_the_environment_names_the_project(tmp_path: Path, stream_wh: Callable[..., Ended]) -> None:
    """$STREAM_WH_PROJECT stands in for -C."""
    ended = stream_wh("validate", "-o", "json", STREAM_WH_PROJECT=str(tmp_path))
    assert ended.code == 2
    assert str(tmp_path) in ended.error()["message"]


@pytest.mark.parametrize(
    ("error", "code", "name"),
    [
        (UsageError("bad"), 2, "usage"),
        (UnknownNameError("table", "x", ["flights"]), 2, "unknown_name"),
        (LockHeldError("host h, pid 1"), 3, "lock_held"),
        (UnreadableFilesError("flights", []), 1, "unreadable_files"),
        (PermissionError(13, "Permission denied", "data/epochs"), 1, "system"),
        (KeyboardInterrupt(), 130, "cancelled"),
        (click.UsageError("bad"), 2, "usage"),
        (ZeroDivisionError("oops"), 1, "internal"),
    ],
)
def test_an_error_has_an_exit_code_and_one_text(
    error: BaseException, code: int, name: str, failing: Callable[[BaseException], None], invoke: Callable[..., Ended]
) -> None:
    """As text it is one clear message; with -o json it is an object with a stable code; stdout stays empty."""
    failing(error)
    ended = invoke("tables")
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.strip().startswith("error: ")
    assert "Traceback" not in ended.err
    for spelling in (["-o", "json"], ["-ojson"], ["--output=jsonl"], ["--output", "json"]):
        ended = invoke("tables", *spelling)
        record = ended.error()
        assert (ended.code, ended.out) == (code, "")
        assert (record["code"], record["exit_code"], record["retry"]) == (name, code, code in (3, 130))


def test_a_json_error_has_the_fields_of_its_type(failing: Callable[[BaseException], None], invoke: Callable[..., Ended]) -> None:
    """Fields are typed: lists are lists."""
    failing(UnknownNameError("table", "x", ["flights", "dns"]))
    record = invoke("tables", "-o", "json").error()
    assert record["known"] == ["flights", "dns"]
    assert record["name"] == "x"


def test_json_is_recognised_only_as_an_output_format() -> None:
    """A key or a file of that name is no request for JSON."""
    assert not errors.wants_json(["probe", "t", "json"])
    assert not errors.wants_json(["probe", "t", "--", "-o", "json"])
    assert not errors.wants_json(["tables", "-o", "csv", "--output-file", "json"])
    assert errors.wants_json(["probe", "t", "-o", "json", "--bad"])


def test_an_error_cannot_act_on_a_terminal(failing: Callable[[BaseException], None], invoke: Callable[..., Ended]) -> None:
    """Names of files and columns appear in errors; their control characters do not."""
    failing(UsageError("no table \x1b]0;owned\x07"))
    assert "\x1b" not in invoke("tables").err


def test_a_fault_of_the_program_can_be_traced(
    failing: Callable[[BaseException], None], monkeypatch: pytest.MonkeyPatch, invoke: Callable[..., Ended]
) -> None:
    """An unexpected exception is one line that names the variable which shows the traceback."""
    failing(ZeroDivisionError("oops"))
    assert "STREAM_WH_DEBUG=1" in invoke("tables").err
    monkeypatch.setenv("STREAM_WH_DEBUG", "1")
    assert "Traceback" in invoke("tables").err


def test_options_that_do_not_go_together_are_usage_errors(invoke: Callable[..., Ended]) -> None:
    """Each contradiction is refused before anything is opened."""
    for arguments in (
        ["update", "--from", "first"],
        ["plan", "--from", "2013-01-01T00:00:00Z"],
        ["sql"],
        ["sql", "select 1", "-f", "-"],
        ["init", "--example", "flights", "--from", __file__],
        ["update", "--at", "yesterday"],
        ["scan", "t", "--limit", "-1"],
        ["scan", "t", "--columns", "a,,b"],
    ):
        ended = invoke(*arguments)
        assert (ended.code, ended.out) == (2, ""), arguments
        assert invoke(*arguments, "-o", "json").error()["code"] == "usage"
    assert invoke("scan", "t", "-o", "xml").code == 2


def test_instants_are_iso_8601_or_now() -> None:
    """An offset counts, none means UTC, `now` is the clock's."""
    from warehouse.cli.options import INSTANT  # noqa: PLC0415 - one test looks at the type itself

    assert INSTANT.convert("2013-01-01T12:00:00+02:00", None, None) == INSTANT.convert("2013-01-01T10:00Z", None, None)
    assert INSTANT.convert("2013-01-01", None, None) == INSTANT.convert("2013-01-01T00:00:00Z", None, None)
    assert abs(INSTANT.convert("now", None, None) - time.time_ns() // 1000) < 60_000_000


def test_a_closed_pipe_is_silent(environment: dict[str, str]) -> None:
    """Nobody listening is no error."""
    program = "import sys; from warehouse.cli.main import run; sys.exit(run(sys.argv[1:]))"
    reader, writer = os.pipe()
    os.close(reader)
    for arguments in (["--help"], ["doctor", "-o", "csv"]):
        process = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            stdout=writer,
            stderr=subprocess.PIPE,
            env=environment,
            check=False,
        )
        assert (process.returncode, process.stderr) == (0, b""), arguments
    os.close(writer)


def test_interrupting_ends_with_130(environment: dict[str, str]) -> None:
    """Ctrl-C during an update tells that nothing is lost."""
    program = (
        "import sys, time, warehouse.cli.writing\n"
        "def wait(*_): print('ready', flush=True); time.sleep(60)\n"
        "warehouse.cli.writing.update = wait\n"
        "from warehouse.cli.main import run\n"
        "sys.exit(run(['update']))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "the next `stream-wh update` completes what was begun" in err


def test_completion_knows_commands_and_tables(tmp_path: Path, environment: dict[str, str]) -> None:
    """The shell completes command names, and table names from the declarations."""
    (tmp_path / "warehouse.toml").write_text("[streams.flights]\n[streams.dns]\n")
    for words, expected in (("stream-wh pro", "probe"), (f"stream-wh -C {tmp_path} probe fl", "flights")):
        env = {
            **environment,
            "_STREAM_WH_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        process = subprocess.run(
            [sys.executable, "-c", "from warehouse.cli.main import main; main()"],
            capture_output=True,
            text=True,
            env=env,
            check=False,
        )
        assert f"plain,{expected}" in process.stdout


def test_the_job_takes_the_options_of_update(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler's entry point passes its arguments to the same command."""
    from warehouse.jobs import update  # noqa: PLC0415 - one test needs it

    seen: list[list[str]] = []
    monkeypatch.setattr(update, "run", lambda arguments: seen.append(arguments) or 0)
    assert update.main(["-C", "w", "--at", "2013-01-01"]) == 0
    assert update.main(["--each"]) == 0
    assert seen == [["-C", "w", "update", "--at", "2013-01-01"], ["update", "--each"]]


def test_configuration_errors_list_every_problem() -> None:
    """With -o json each problem is an object."""
    from warehouse.errors import ConfigurationError  # noqa: PLC0415 - one test needs it

    failure = errors.failure_of(ConfigurationError([Problem("w.toml", "a.b", '"1x"', "a duration", "1h")]), [])
    assert failure.fields["problems"] == (Problem("w.toml", "a.b", '"1x"', "a duration", "1h"),)


def test_an_interrupt_inside_exec_does_not_change_the_exit_code(tmp_path: Path) -> None:
    """CPython remembers a Ctrl-C in code made from a string (a data class); `python -m warehouse.cli` still exits with 130."""
    stand_in = """
        import warehouse.cli.main

        def run(arguments):
            try:
                exec("raise KeyboardInterrupt")
            except KeyboardInterrupt:
                return 130

        warehouse.cli.main.run = run
    """
    (tmp_path / "sitecustomize.py").write_text(dedent(stand_in))
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(__file__).parent.parent.parent}"}
    process = subprocess.run([sys.executable, "-m", "warehouse.cli", "update"], env=environment, check=False)
    assert process.returncode == CANCELLED
