"""Restates a table: its landing files are loaded again under the current declaration, and replace the rows that they gave.

A table does not record the file of each row, but each epoch records its landing files. So a restatement restores a table to its
contents at an earlier epoch, or empties it, and loads again the files that were loaded since, all in one new epoch at the same
window time. Views over the table are rebuilt. To retry rejected records, the table does not change, and only rejected records and
unreadable files are tried again.

:mod:`warehouse.operations.restated_files` finds the files, :mod:`warehouse.operations.restate_plan` makes the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from warehouse.catalog.declaration import declaration_of
from warehouse.catalog.drift import compare, effective_layout
from warehouse.epochs.journal import nothing_loaded
from warehouse.epochs.known import known_files, known_of
from warehouse.errors import ChangedDeclarationError, RestateError, UnknownNameError
from warehouse.ingest.landing import list_landing
from warehouse.operations.context import WriteContext, locked
from warehouse.operations.execution import begin, finish
from warehouse.operations.next_epoch import load_files_left
from warehouse.operations.restate_plan import ChangedDeclaration, restate_base, restate_plan
from warehouse.operations.restated_files import Reread, loaded_since, rejected_before
from warehouse.operations.standing_still import behind
from warehouse.planning.coalesced_plans import coalesced_of
from warehouse.planning.declared_nodes import declared_nodes, nodes_above, with_columns
from warehouse.planning.node_plans import unbuilt
from warehouse.steps.relanding import ArchivedFiles

if TYPE_CHECKING:
    from warehouse.catalog.model import Catalog, Stream
    from warehouse.epochs.records import Epoch, TableState
    from warehouse.operations.execution import CurrentState

__all__ = ["RestateReport", "restate"]


@dataclass(frozen=True)
class RestateReport:
    """The result of a restatement: the epochs that it made, the epoch whose rows stayed, and the files that it loaded again.

    ``lost`` files gave rows once, and are missing or changed now; ``put_back`` files were restored from the archive.
    """

    epochs: tuple[Epoch, ...]
    since: Epoch | None
    files: tuple[str, ...]
    lost: tuple[str, ...] = ()
    put_back: tuple[str, ...] = ()
    finished: tuple[Epoch, ...] = ()
    warnings: tuple[str, ...] = ()


def restate(
    context: WriteContext,
    table: str,
    *,
    since: int | Literal["first"] | None = None,
    rejected: bool = False,
    allow_lost: bool = False,
) -> RestateReport:
    """Load landing files of a stream or relation again, and replace the rows that they gave.

    Parameters
    ----------
    context
        The warehouse.
    table
        A declared stream or relation.
    since
        Load the files that were loaded after this window time (microseconds); None: all files whose epochs are still readable;
        ``first``: every known file. With ``first`` the declaration may have changes that a table cannot follow, such as a
        column's type.
    rejected
        Load only rejected records and unreadable files.
    allow_lost
        Continue if files that gave rows no longer exist: these rows are lost.

    Raises
    ------
    RestateError
        When the restatement is impossible; then nothing was written.

    """
    with locked(context):
        current = finish(context)
        if current.last is None:
            raise nothing_loaded(context.root, "there is nothing to go back to")
        return _restate(context, current, current.last, table, since, rejected=rejected, allow_lost=allow_lost)


def _restate(
    context: WriteContext,
    current: CurrentState,
    last: Epoch,
    table: str,
    since: int | Literal["first"] | None,
    *,
    rejected: bool,
    allow_lost: bool,
) -> RestateReport:
    catalog = context.catalog
    declared = declared_nodes(catalog)
    stream, state = _restatable(catalog, last, table)
    changed, warnings = _changed(catalog, last, stream, since)
    reread = _reread(catalog, last, stream, state, since, rejected=rejected, allow_lost=allow_lost)
    if rejected and not reread.files:
        return RestateReport((), None, (), reread.lost, finished=current.finished, warnings=warnings)
    moving = behind(last, declared).moving(declared)
    nodes = nodes_above(table, moving, unbuilt(moving, last), coalesced_of(last, table))
    base = restate_base(last, table, reread, nodes, changed)
    names = {node_input.node.table for node_input in nodes}
    built_nodes = with_columns(moving, catalog, base.epoch, last.slot, context.writing_spark)
    rebuilt_nodes = [node_input for node_input in built_nodes if node_input.node.table in names]
    first = begin(context, current, restate_plan(catalog, stream, reread, base, rebuilt_nodes, clock=context.clock()))
    return RestateReport(
        (first, *load_files_left(context, current, first)),
        reread.since,
        tuple(file.path for file in reread.files),
        reread.lost,
        tuple(reread.back),
        finished=current.finished,
        warnings=warnings,
    )


def _restatable(catalog: Catalog, last: Epoch, table: str) -> tuple[Stream, TableState]:
    stream, state = catalog.source(table), last.table(table)
    if stream is not None and state is not None:
        return stream, state
    if catalog.view(table) is not None:
        raise RestateError(table, "it is a view, which follows what it reads; restate the streams or relations below it")
    raise UnknownNameError("stream or relation", table, [source.name for source in catalog.sources])


def _changed(
    catalog: Catalog, last: Epoch, stream: Stream, since: int | Literal["first"] | None
) -> tuple[ChangedDeclaration | None, tuple[str, ...]]:
    """Return the changes that the table on disk cannot follow; they require a restatement of the whole table."""
    drift = compare(catalog, last)
    section = "streams" if stream.changes is None else "relations"
    own_problems = [problem for problem in drift.problems if problem.key.startswith(f"{section}.{stream.name}.")]
    archived = any(problem.key.endswith(".on_expiry") for problem in own_problems)
    if len(own_problems) < len(drift.problems) or archived or (own_problems and since != "first"):
        raise ChangedDeclarationError(drift.problems)
    warnings = (*catalog.warnings, *drift.warnings)
    if not own_problems:
        return None, warnings
    layout = effective_layout(stream, None, catalog.update_interval)
    return ChangedDeclaration(declaration_of(stream, catalog.root), layout), warnings


def _reread(
    catalog: Catalog,
    last: Epoch,
    stream: Stream,
    state: TableState,
    since: int | Literal["first"] | None,
    *,
    rejected: bool,
    allow_lost: bool,
) -> Reread:
    root = catalog.root
    table_files = known_of(known_files(root, last), stream.name)
    landing_files = list(list_landing(stream.landing_path, stream.files))
    archived = ArchivedFiles(stream, frozenset(list_landing(stream.landing_path, "*")))
    if rejected:
        return rejected_before(root, stream.name, state.rejected, table_files, landing_files, archived)
    reread = loaded_since(root, last, stream.name, table_files, landing_files, since, archived)
    if reread.lost and not allow_lost:
        names = ", ".join(reread.lost[:3])
        raise RestateError(
            stream.name,
            f"{len(reread.lost)} file(s) that gave rows are missing or changed ({names}); restore them, or give "
            "--allow-lost to do without their rows",
        )
    return reread
