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
        filter v > 1   rows expire after 30m; v: blocks by age
        └─ scan calls  rows expire after 30m; blocks by age
        """,
    ),
    (
        "SELECT * FROM events",
        """
        scan events  rows never expire; v: append-only
        """,
    ),
    (
        "SELECT c.k, e.v * 2 AS w FROM calls c JOIN time_window(events, INTERVAL 1 HOUR) e ON upper(c.k) = e.k WHERE e.v > 1",
        """
        project k = c.k, w = e.v * 2  rows expire at their own time; v: grid by arrival and end
        └─ join on upper(k) = e.k     rows expire at their own time
           ├─ scan calls              rows expire after 30m; blocks by age
           └─ filter v > 1            rows expire after 1h
              └─ time window 1h       rows expire after 1h
                 └─ scan events       rows never expire; append-only
        """,
    ),
    (
        "SELECT DISTINCT tail FROM flights f WHERE NOT EXISTS (SELECT 1 FROM weather w WHERE w.airport = f.origin)",
        """
        distinct tail                         rows can leave early; v: buckets by key; counting
        └─ anti-join on f.origin = w.airport  rows can leave early; v.1: buckets by key
           ├─ scan flights                    rows expire at their own time; grid by arrival and end
           └─ scan weather                    rows expire at their own time; grid by arrival and end
        """,
    ),
    (
        "SELECT origin FROM flights WHERE origin IN (SELECT airport FROM weather) GROUP BY origin HAVING max(delay) > 1",
        """
        filter max(flights.delay) > 1                   rows can leave early; v: buckets by key
        └─ group by origin: max(flights.delay)          rows can leave early; v.3: buckets by key
           └─ join on flights.origin = weather.airport  rows expire at their own time; v.2: grid by arrival and end
              ├─ scan flights                           rows expire at their own time; grid by arrival and end
              └─ distinct weather_airport  rows expire at their own time; v.1: grid by arrival and end; two rows a value at most
                 └─ scan weather                        rows expire at their own time; grid by arrival and end
        """,
    ),
    (
        "SELECT k, sum(v + 1) AS s FROM time_window(events, INTERVAL 1 HOUR, internal => true) GROUP BY k",
        """
        changes appended             rows never expire; v: append-only
        └─ group by k: sum(v + 1)    rows can leave early; v.1: buckets by key
           └─ time window 1h         rows expire after 1h
              └─ scan events         rows never expire; append-only
        """,
    ),
    (
        "SELECT e.k FROM time_window(events, INTERVAL 1 HOUR, internal => true) e JOIN events f ON f.k = e.k",
        """
        join on f.k = e.k            rows expire at their own time, results never expire; v: append-only
        ├─ time window 1h, internal  rows expire after 1h, results never expire
        │  └─ scan events            rows never expire; append-only
        └─ scan events               rows never expire; append-only
        """,
    ),
    (
        "SELECT f.tail, p.model, c.name FROM flights f LEFT JOIN planes p USING (tail) JOIN cities c ON c.code = f.origin",
        """
        project tail = f_tail, model = p_model, name = c_name  rows can leave early; v: buckets by key
        └─ join on c.code = f.origin                           rows can leave early; v.1: buckets by key
           ├─ as-of lookup planes on f.tail = tail, outer      rows expire at their own time
           │  └─ scan flights                                  rows expire at their own time; grid by arrival and end
           └─ scan cities                                      rows can leave early; buckets by key
        """,
    ),
    (
        "SELECT tail FROM flights QUALIFY row_number() OVER (PARTITION BY origin ORDER BY delay + 1 DESC) <= 2",
        """
        project tail                              rows can leave early; v: buckets by key
        └─ top 2 of each origin by delay + 1 desc  rows can leave early; v.1: buckets by key
           └─ scan flights                        rows expire at their own time; grid by arrival and end
        """,
    ),
    (
        "SELECT c.k, e.v FROM row_window(calls, 5, k) c LEFT JOIN events e ON c.k = e.k AND e.v > c.v",
        """
        left outer join on c.k = e.k, where e.v > c.v  rows can leave early; v: buckets by key
        ├─ row window newest 5 of each k               rows can leave early; v.1: buckets by key
        │  └─ scan calls                               rows expire after 30m; blocks by age
        └─ scan events                                 rows never expire; append-only
        """,
    ),
    (
        "SELECT k FROM calls UNION SELECT k FROM events",
        """
        distinct k         rows expire at their own time; v: grid by arrival and end; two rows a value at most
        └─ union all       rows expire at their own time
           ├─ scan calls   rows expire after 30m; blocks by age
           └─ scan events  rows never expire; append-only
        """,
    ),
    (
        "SELECT DISTINCT k FROM events",
        """
        distinct k      rows never expire; v: append-only; list of seen values
        └─ scan events  rows never expire; append-only
        """,
    ),
    (
        "SELECT k, v FROM calls EXCEPT ALL SELECT k, v FROM events",
        """
        bag difference k, v  rows can leave early; v: buckets by key
        ├─ scan calls        rows expire after 30m; blocks by age
        └─ scan events       rows never expire; append-only
        """,
    ),
    (
        "SELECT count(*) AS n FROM row_window(calls, 3)",
        """
        group all: count(*)       rows can leave early; v: buckets by key
        └─ row window newest 3    rows can leave early; v.1: buckets by key
           └─ scan calls          rows expire after 30m; blocks by age
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
        "distinct k     rows expire at their own time; v: grid by arrival and end; two rows a value at most",
        "└─ scan calls  rows expire after 30m; blocks by age",
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
