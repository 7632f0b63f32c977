from __future__ import annotations

import re
import textwrap

import pytest

from warehouse.views.describe import describe, rendered

from .catalogs import INTERVAL, plan

DRAWN = [
    (
        "SELECT k FROM calls WHERE v > 1",
        """
        filter v > 1   WKS(30m); v: wave index
        └─ scan calls  WKS(30m); wave index
        """,
    ),
    (
        "SELECT * FROM events",
        """
        scan events  MON; v: append-only
        """,
    ),
    (
        "SELECT c.k, e.v * 2 AS w FROM calls c JOIN time_window(events, INTERVAL 1 HOUR) e ON upper(c.k) = e.k WHERE e.v > 1",
        """
        project k = c.k, w = e.v * 2  WK; v: doubly partitioned
        └─ join on upper(k) = e.k     WK
           ├─ scan calls              WKS(30m); wave index
           └─ filter v > 1            WKS(1h)
              └─ time window 1h       WKS(1h)
                 └─ scan events       MON; append-only
        """,
    ),
    (
        "SELECT DISTINCT tail FROM flights f WHERE NOT EXISTS (SELECT 1 FROM weather w WHERE w.airport = f.origin)",
        """
        distinct tail                         STR; v: keyed; counting
        └─ anti-join on f.origin = w.airport  STR; v.1: keyed
           ├─ scan flights                    WK; doubly partitioned
           └─ scan weather                    WK; doubly partitioned
        """,
    ),
    (
        "SELECT origin FROM flights WHERE origin IN (SELECT airport FROM weather) GROUP BY origin HAVING max(delay) > 1",
        """
        filter max(flights.delay) > 1                   STR; v: keyed
        └─ group by origin: max(flights.delay)          STR; v.3: keyed
           └─ join on flights.origin = weather.airport  WK; v.2: doubly partitioned
              ├─ scan flights                           WK; doubly partitioned
              └─ distinct weather_airport               WK; v.1: doubly partitioned; delta*: two rows a value at most
                 └─ scan weather                        WK; doubly partitioned
        """,
    ),
    (
        "SELECT k, sum(v + 1) AS s FROM time_window(events, INTERVAL 1 HOUR, internal => true) GROUP BY k",
        """
        changes appended             MON; v: append-only
        └─ group by k: sum(v + 1)    STR; v.1: keyed
           └─ time window 1h         WKS(1h)
              └─ scan events         MON; append-only
        """,
    ),
    (
        "SELECT e.k FROM time_window(events, INTERVAL 1 HOUR, internal => true) e JOIN events f ON f.k = e.k",
        """
        join on f.k = e.k            WK, output MON; v: append-only
        ├─ time window 1h, internal  WKS(1h), output MON
        │  └─ scan events            MON; append-only
        └─ scan events               MON; append-only
        """,
    ),
    (
        "SELECT f.tail, p.model, c.name FROM flights f LEFT JOIN planes p USING (tail) JOIN cities c ON c.code = f.origin",
        """
        project tail = f_tail, model = p_model, name = c_name  STR; v: keyed
        └─ join on c.code = f.origin                           STR; v.1: keyed
           ├─ as-of lookup planes on f.tail = tail, outer      WK
           │  └─ scan flights                                  WK; doubly partitioned
           └─ scan cities                                      STR; keyed
        """,
    ),
    (
        "SELECT tail FROM flights QUALIFY row_number() OVER (PARTITION BY origin ORDER BY delay + 1 DESC) <= 2",
        """
        project tail                              STR; v: keyed
        └─ top 2 of each origin by delay + 1 desc  STR; v.1: keyed
           └─ scan flights                        WK; doubly partitioned
        """,
    ),
    (
        "SELECT c.k, e.v FROM row_window(calls, 5, k) c LEFT JOIN events e ON c.k = e.k AND e.v > c.v",
        """
        left outer join on c.k = e.k, where e.v > c.v  STR; v: keyed
        ├─ row window newest 5 of each k               STR; v.1: keyed
        │  └─ scan calls                               WKS(30m); wave index
        └─ scan events                                 MON; append-only
        """,
    ),
    (
        "SELECT k FROM calls UNION SELECT k FROM events",
        """
        distinct k         WK; v: doubly partitioned; delta*: two rows a value at most
        └─ union all       WK
           ├─ scan calls   WKS(30m); wave index
           └─ scan events  MON; append-only
        """,
    ),
    (
        "SELECT DISTINCT k FROM events",
        """
        distinct k      MON; v: append-only; list of seen values
        └─ scan events  MON; append-only
        """,
    ),
    (
        "SELECT k, v FROM calls EXCEPT ALL SELECT k, v FROM events",
        """
        bag difference k, v  STR; v: keyed
        ├─ scan calls        WKS(30m); wave index
        └─ scan events       MON; append-only
        """,
    ),
    (
        "SELECT count(*) AS n FROM row_window(calls, 3)",
        """
        group all: count(*)       STR; v: keyed
        └─ row window newest 3    STR; v.1: keyed
           └─ scan calls          WKS(30m); wave index
        """,
    ),
]


def unspaced(text: str) -> list[str]:
    """Return the lines of a picture; how far apart its two columns are does not matter."""
    return [re.sub(r"(?<=\S) {2,}", "  ", line.rstrip()) for line in text.splitlines()]


@pytest.mark.parametrize(("sql", "picture"), DRAWN, ids=[sql for sql, _ in DRAWN])
def test_drawn(sql: str, picture: str) -> None:
    """A plan is drawn as a tree with labels, tables and structures, in the user's names."""
    description = rendered(describe(plan(sql), INTERVAL)).split("\n\n")[0]
    assert unspaced(description) == unspaced(textwrap.dedent(picture).strip("\n"))


def test_columns_are_aligned() -> None:
    """Labels stand under each other."""
    text = rendered(describe(plan("SELECT DISTINCT k FROM calls"), INTERVAL)).splitlines()
    assert text[:2] == [
        "distinct k     WK; v: doubly partitioned; delta*: two rows a value at most",
        "└─ scan calls  WKS(30m); wave index",
    ]


def test_output_windows() -> None:
    """An output window is drawn over the results that it keeps."""
    sql = "SELECT c.k FROM calls c JOIN events e ON c.k = e.k"
    lines = describe(plan(sql, output_rows=5), INTERVAL).lines
    assert [(line.operator, line.text, str(line.state), line.table) for line in lines[:2]] == [
        ("output window", "5 rows", "STR", "v"),
        ("join", "on c.k = e.k", "WK", "v.1"),
    ]


def test_other_plans_and_warnings() -> None:
    """Equal plans are drawn beside the declared one, with what they gain; warnings follow."""
    sql = "SELECT DISTINCT k FROM calls c WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.k = c.k)"
    description = describe(plan(sql), INTERVAL)
    (other,) = description.alternatives
    assert other.name == "DISTINCT push-down"
    assert [line.operator for line in other.lines] == ["anti-join", "distinct", "scan", "scan"]
    assert [node.label for node in other.nodes] == ["WK", "STR"]
    assert description.nodes == plan(sql).nodes
    declared, pushed = rendered(description).split("\n\n")
    assert declared.startswith("distinct k")
    assert pushed.startswith("DISTINCT push-down: DISTINCT then sees no row that leaves before its end")
