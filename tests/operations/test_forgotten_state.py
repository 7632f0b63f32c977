"""State of operators that a plan does not rebuild is kept as long as the view reads it."""

from __future__ import annotations

from warehouse.catalog.declaration import table_declaration
from warehouse.epochs.records import TableState, ViewRecord
from warehouse.layout import keyed_layout
from warehouse.planning.plan_record import NodePlan, Plan
from warehouse.steps.table_states import forgotten_state
from warehouse.views.algebra import Distinct, Group, Join, Node, Operator, Scan

LAYOUT = keyed_layout(4)


def node(table: str, operator: Operator) -> Node:
    """Return a node of the view ``v``."""
    return Node(table, operator, ("k",), ("k",), "STR", 4, hidden=table != "v")


def state(table: str, operator: Operator, spare_of: str | None = None) -> TableState:
    """Return a table of the view ``v``."""
    record = ViewRecord("v", "", node(table, operator), "drop", spare_of=spare_of)
    kind = "view" if table == "v" else "state"
    declaration = table_declaration((), ("k",), label="STR", max_lifetime=None)
    return TableState(table, kind, f"tables/{table}", "", 0, LAYOUT, declaration, "", (), view=record)  # type: ignore[arg-type]


def forgotten(tables: list[TableState], *built: tuple[str, Operator]) -> list[str]:
    """Return the state that a plan which builds these nodes again forgets."""
    nodes = tuple(
        NodePlan(name, "v", "", node(name, made), LAYOUT, 0, first=True, short_lived="drop", columns=()) for name, made in built
    )
    plan = Plan(1, 0, 0, 0, 0, 1, 0, 0, "", (), (), nodes=nodes)
    states = {table.name: table for table in tables}
    states |= {name: state(name, made) for name, made in built}  # as the plan leaves them
    return sorted(table_state.name for table_state in forgotten_state(plan, states))


def test_state_is_kept_while_the_view_reads_it() -> None:
    """A join of a DISTINCT and a group: whichever part is rebuilt, the others stay, spare rows with their DISTINCT."""
    shown, grouped = Distinct(Scan("a")), Group(Scan("b"), ("k",), ())
    join = Join((Scan("v.1"), Scan("v.2")), ())
    tables = [state("v.1", shown), state("v.1.spare", shown, "v.1"), state("v.2", grouped), state("v", join)]
    assert forgotten(tables, ("v.2", grouped), ("v", join)) == []
    assert forgotten(tables, ("v.1", shown), ("v.1.spare", shown), ("v", join)) == []
    assert forgotten(tables, ("v.1", shown), ("v", join)) == ["v.1.spare"]  # a DISTINCT that needs none any more
    assert forgotten(tables, ("v", Group(Scan("v.2"), ("k",), ()))) == ["v.1", "v.1.spare"]
    assert forgotten(tables, ("v", Group(Scan("a"), ("k",), ()))) == ["v.1", "v.1.spare", "v.2"]
