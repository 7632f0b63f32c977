"""The interpreter that explains a plan: the same steps that :mod:`warehouse.steps.execute` would commit, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from warehouse.planning.steps import (
    AddColumns,
    CreateTable,
    CutLog,
    EraseRows,
    MigrateTable,
    MoveDeferred,
    MoveRelation,
    MoveWindow,
    ReplaceTable,
    RestoreTable,
    RewriteBuckets,
    RewriteCells,
    SetProperties,
    StoreRejected,
    StoreRestored,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.epochs.records import LandingFile
    from warehouse.planning.steps import FormerCells, Plan, Step

__all__ = ["StepExplanation", "describe", "explain"]


@dataclass(frozen=True)
class StepExplanation:
    """A step in numbers: files it reads, sub-indices and partitions it touches, old rows it reads at the most."""

    step: int
    table: str
    action: str
    detail: str
    files: int = 0
    bytes: int = 0
    partitions_removed: int = 0
    partitions_rewritten: int = 0


def describe(step: Step) -> str:  # noqa: C901 - a branch for each kind of step
    """Return a step in a few words, for progress."""
    match step:
        case CreateTable():
            return f"create {step.path}"
        case AddColumns():
            return f"add columns to {step.path}"
        case MigrateTable():
            return f"write {step.path} anew in its new layout"
        case MoveWindow():
            return f"append to {step.path}"
        case RewriteCells():
            return f"rewrite {len(step.cells)} sub-indices of {step.path}"
        case MoveDeferred():
            return f"move waiting rows of {step.stream}"
        case StoreRejected():
            return f"keep rejected rows of {step.stream}"
        case MoveRelation():
            return f"take changes into {step.path}"
        case ReplaceTable():
            return f"empty {step.path} for its new declaration"
        case RestoreTable():
            return f"put {step.path} back"
        case RewriteBuckets():
            return f"replace what changed of {step.path}"
        case StoreRestored():
            return f"keep short-lived results of {step.stream}"
        case SetProperties():
            return f"set the properties of {step.path}"
        case EraseRows():
            return f"erase rows of {step.path}"
        case CutLog():
            return f"cut the log of {step.path}"
        case _:
            assert_never(step)


def explain(plan: Plan) -> tuple[StepExplanation, ...]:
    """Return what each step of a plan would do."""
    files = {stream.name: [file for group in stream.inputs for file in group.files] for stream in plan.streams}
    come = {name: f"{len(own)} files" for name, own in files.items()}
    come |= {each.name: f"rows that expired from {each.archive_of}" for each in plan.streams if each.archive_of}
    return tuple(
        _explained(number, step, files.get(step.stream, ()), come.get(step.stream, "the results that come"))
        for number, step in enumerate(plan.steps)
    )


def _explained(number: int, step: Step, files: Sequence[LandingFile], what: str) -> StepExplanation:  # noqa: C901, PLR0912 - a branch for each kind of step
    """Return a step in numbers; ``files`` are those of its stream, ``what`` is what its table gets."""
    size = sum(file.size for file in files)
    match step:
        case CreateTable(role="rows"):
            return StepExplanation(number, step.path, "create", "an empty table with its properties")
        case CreateTable():
            return StepExplanation(number, step.path, "create", "only if such rows arrive")
        case AddColumns():
            return StepExplanation(number, step.path, "add columns", "rows that are there have null in them")
        case MigrateTable():
            detail = f"the live ones of {step.rows} rows, written anew in the new layout"
            return StepExplanation(number, step.path, "migrate", detail)
        case MoveWindow():
            merged = sum(len(seal.blocks) for seal in step.seals)
            gone = len(step.expired) + len(step.dead) + len(step.former.gone)
            detail = (
                f"append {what} as runs; remove {gone} expired partitions; "
                f"merge up to {merged} partitions of {len(step.seals)} closing sub-indices{_former(step.former)}"
            )
            again = merged + len(step.former.aged) + len(step.former.moved)
            return StepExplanation(number, step.path, "append", detail, len(files), size, gone, again)
        case RewriteCells():
            detail = f"rewrite {len(step.cells)} sub-indices ({step.rows} rows) with {what}{_former(step.former)}"
            again = len(step.cells) + len(step.former.aged) + len(step.former.moved)
            return StepExplanation(number, step.path, "rewrite", detail, len(files), size, len(step.former.gone), again)
        case MoveDeferred():
            taken = f"take the rows of {len(step.taken)} slots that have come; " if step.taken else ""
            return StepExplanation(number, step.path, "move", f"{taken}keep rows whose slot is still to come")
        case StoreRejected():
            return StepExplanation(number, step.path, "append", "invalid rows with their reasons, if any")
        case MoveRelation():
            detail = f"take the changes of {len(files)} files as versions, in the buckets of their keys"
            return StepExplanation(number, step.path, "rewrite", detail, len(files), size)
        case ReplaceTable():
            return StepExplanation(number, step.path, "empty", "the declaration changed, so it is filled anew")
        case RestoreTable():
            detail = "empty it" if step.to_version < 0 else f"its files of version {step.to_version}, by further links to them"
            return StepExplanation(number, step.path, "restore", detail)
        case RewriteBuckets():
            return StepExplanation(number, step.path, "rewrite", "the buckets in which rows changed")
        case StoreRestored():
            return StepExplanation(number, step.path, "append", "results that began and ended since the last update, if any")
        case SetProperties():
            return StepExplanation(number, step.path, "set properties", "those of this build, and how long its log is kept")
        case EraseRows():
            where = f"{len(step.cells)} partitions" if step.cells else "the table"
            detail = f"rewrite {where} without {f'{step.rows} rows of the keys' if step.keyed else 'expired rows'}"
            return StepExplanation(number, step.path, "erase", detail, partitions_rewritten=len(step.cells))
        case CutLog():
            return StepExplanation(number, step.path, "cut log", "keep of its log what the newest epoch needs")
        case _:
            assert_never(step)


def _former(cells: FormerCells) -> str:
    """What becomes of the partitions of a former layout, in words; nothing when there is none."""
    told = []
    if cells.gone or cells.aged:
        told.append(f"remove {len(cells.gone)} and rewrite {len(cells.aged)} partitions of the former layout")
    if cells.moved:
        told.append(f"move what is left of the former layout ({len(cells.moved)} partitions)")
    return "".join(f"; {text}" for text in told)
