"""Compare every reader of a table with the rows of its files, predicate by predicate."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .deviations import known
from .predicates import Term, drawn, holds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .readers import Reader
    from .tables import Stored

__all__ = ["Difference", "Result", "compare", "predicates_on"]


@dataclass(frozen=True)
class Difference:
    """A reader that returned other rows, or an error."""

    table: str
    reader: str
    terms: tuple[Term, ...] | None
    wanted: tuple[int, ...]
    given: tuple[int, ...] | str

    @property
    def text(self) -> str:
        """One line about the difference."""
        answer = self.given if isinstance(self.given, str) else f"{len(self.given)} rows"
        return f"{self.table}, {self.reader}: {str(self.terms)[:300]}: {len(self.wanted)} rows wanted, {answer[:300]}"


@dataclass
class Result:
    """What a run has compared, and the differences that are not known deviations."""

    answers: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    deviations: Counter[str] = field(default_factory=Counter)


def predicates_on(stored: Stored, count: int) -> list[tuple[Term, ...]]:
    """Return predicates on the key, the system columns, the partition columns, and every other column that compares."""
    unordered = ("array", "struct", "binary", "float", "double")  # readers do not agree on how NaN compares
    comparable = [column for column in stored.columns if not column[1].startswith(unordered)]
    nested = [column for column in stored.columns if column not in comparable]
    at_first = (*stored.key, "_ts", "_exp", "sub_index", "exp_block")
    first = [(name, kind) for name, kind in comparable if name in at_first]
    other_columns = [column for column in comparable if column not in first]
    predicates = drawn(first, stored.rows, count - count // 3) + drawn(other_columns, stored.rows, count // 3, seed=2)
    return predicates + _nulls(nested)


def _nulls(columns: Sequence[tuple[str, str]]) -> list[tuple[Term, ...]]:
    return [(Term(name, kind, operator),) for name, kind in columns for operator in ("is null", "is not null")]


def compare(result: Result, stored: Stored, readers: Sequence[Reader], predicates: Sequence[tuple[Term, ...]]) -> None:
    """Read all rows, then by each predicate, and record the differences."""
    everything = sorted(repr([row[name] for name, _ in stored.columns]) for row in stored.rows)
    asked = [(terms, tuple(sorted(row["n"] for row in stored.rows if holds(terms, row)))) for terms in predicates]
    for reader in readers:
        rows_read: object
        try:
            rows_read = reader.everything()
        except Exception as error:  # noqa: BLE001 - a reader's failure is a difference
            rows_read = repr(error)
        result.answers[reader.name] += 1
        if rows_read != everything:
            message = rows_read if isinstance(rows_read, str) else f"other rows: {str(rows_read)[:400]}"
            result.differences.append(Difference(stored.name, reader.name, None, tuple(range(len(everything))), message))
        for terms, wanted in asked:
            answer: tuple[int, ...] | str
            try:
                answer = tuple(reader.numbers(terms))
            except Exception as error:  # noqa: BLE001 - as above
                answer = repr(error)
            result.answers[reader.name] += 1
            if answer == wanted:
                continue
            reason = known(reader.name, terms, answer)
            if reason is not None:
                result.deviations[f"{reader.name}: {reason}"] += 1
            else:
                result.differences.append(Difference(stored.name, reader.name, terms, wanted, answer))

