"""A ``warehouse.toml`` that was not written in good faith: each fault is a configuration error, nothing else comes out."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from warehouse.catalog.initialise import write_project
from warehouse.catalog.load import load_catalog
from warehouse.catalog.sizes import SqlBounds, parse_size
from warehouse.errors import ConfigurationError, UsageError, WarehouseError
from warehouse.views.plans import compile_views

from .fuzzing import fuzzed

if TYPE_CHECKING:
    from pathlib import Path

BASE = """[warehouse]
root = "data"
anchor = "2024-01-01T00:00:00Z"
update_interval = "1h"
[streams.a]
landing = "landing/a"
format = "json"
search_key = "k"
arrival = "b"
expires = "e"
max_lifetime = "4h"
[streams.a.columns]
k = "string"
b = "timestamp"
e = "timestamp"
"""


def loaded(directory: Path, content: str | bytes) -> None:
    """Load a configuration and compile its views."""
    (directory / "warehouse.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    compile_views(load_catalog(directory))


DEEP = 5000
BAD = {
    "nested arrays": BASE + "x = " + "[" * DEEP + "]" * DEEP,
    "nested tables": BASE + "x = " + "{a=" * DEEP + "1" + "}" * DEEP,
    "dotted keys": BASE + "[x" + ".x" * DEEP + "]\n",
    "a number of 5000 digits": BASE + "[streams.a.layout]\nexpiry_block = " + "9" * DEEP + "\n",
    "a seed beyond 64 bits": BASE + "[streams.a.layout]\nseed = 99999999999999999999999\n",
    "a grid of 10^36": BASE + "[streams.a.layout]\ngrid = [1000000000000000000, 1000000000000000000]\n",
    "a nested type": BASE + 'n = "' + "array<" * DEEP + "int" + ">" * DEEP + '"\n',
    "a decimal of 5000 digits": BASE + 'n = "decimal(' + "9" * DEEP + ')"\n',
    "a nested expression": BASE.replace('"b"', '"' + "(" * DEEP + "b" + ")" * DEEP + '"', 1),
    "nested calls": BASE.replace('"b"', '"' + "coalesce(" * 400 + "b" + ")" * 400 + '"', 1),
    "a nested query": BASE + '[views.v]\nsearch_key = "k"\nsql = "' + "SELECT * FROM (" * 400 + "a" + ")" * 400 + '"\n',
    "a long sum in a query": BASE + '[views.v]\nsearch_key = "k"\nsql = "SELECT k FROM a WHERE ' + "1+" * 4000 + '1 > 0"\n',
    "a lifetime of 10^20 hours": BASE.replace('"4h"', '"99999999999999999999h"'),
    "a lifetime of 5000 digits": BASE.replace('"4h"', '"' + "9" * DEEP + 'h"'),
    "a name with a path": BASE.replace("streams.a", 'streams."../../x"'),
    "a name with SQL": BASE.replace("streams.a", 'streams."a; DROP TABLE x"'),
    "a name with a quote": BASE.replace("streams.a", "streams.'a\"b'"),
    "a name with a NUL": BASE.replace("streams.a", 'streams."a\\u0000"'),
    "a column with a terminal escape": BASE + '"a\\u001b[31m" = "int"\n',
    "a column that reads backwards": BASE + '"a\\u202eb" = "int"\n',
    "a column of 100 000 signs": BASE + '"' + "a" * 100_000 + '" = "int"\n',
    "a column with a quote": BASE + "\"a'b\" = \"int\"\n",
    "a reserved column": BASE + '"_exp" = "timestamp"\n',
    "a time zone that is a path": BASE.replace("[streams.a.columns]", 'timezone = "../../../etc/passwd"\n[streams.a.columns]'),
    "a time zone that is a directory": BASE.replace("[streams.a.columns]", 'timezone = "Europe"\n[streams.a.columns]'),
    "a root with a NUL": BASE.replace('"data"', '"a\\u0000b"'),
    "a root that is a URI of no store": BASE.replace('"data"', '"http://bucket/x"'),
    "a root in a store without a bucket": BASE.replace('"data"', '"s3://"'),
    "a landing in a store without a bucket": BASE.replace('"landing/a"', '"s3:///a"'),
    "a landing in root": BASE.replace('"landing/a"', '"data/../data/x"'),
    "an expression that calls Java": BASE.replace('"b"', "\"reflect('java.lang.Runtime', 'getRuntime')\"", 1),
    "an expression with a sub-query": BASE.replace('"b"', '"(SELECT max(b) FROM x)"', 1),
    "an expression that closes its parenthesis": BASE.replace('"b"', '"b), (SELECT 1"', 1),
    "an encoding that is none": BASE.replace('"json"', '"csv"\noptions = { encoding = "nope" }'),
    "an encoding that is no text": BASE.replace('"json"', '"csv"\noptions = { encoding = "rot13" }'),
    "an empty delimiter": BASE.replace('"json"', '"csv"\noptions = { delimiter = "" }'),
    "a line break as delimiter": BASE.replace('"json"', '"csv"\noptions = { sep = "\\n" }'),
    "a quote of two signs": BASE.replace('"json"', '"csv"\noptions = { quote = "ab" }'),
    "no columns at the most": BASE.replace('"json"', '"csv"\noptions = { maxColumns = -1 }'),
    "a setting that is owned": BASE + '[spark]\n"spark.sql.extensions" = "evil.Extension"\n',
    "a size of nothing": BASE + '[sql]\nmemory = "0GB"\n',
    "a size without a unit": BASE + "[sql]\nspill = 100\n",
    "a record beyond Java": BASE.replace('"json"', '"json"\nmax_record = "5GB"'),
    "no expansion": BASE.replace('"json"', '"json"\nmax_expansion = 0'),
    "NUL bytes": b"\0" * 100,
    "bytes that are no text": bytes(range(256)),
    "nothing": b"",
}


@pytest.mark.parametrize("content", BAD.values(), ids=list(BAD))
def test_bad_configurations(tmp_path: Path, content: str | bytes) -> None:
    """Each is refused with its place and what is allowed; no traceback, no other error."""
    with pytest.raises(ConfigurationError, match="allowed: "):
        loaded(tmp_path, content)


values = st.recursive(
    st.one_of(
        st.sampled_from(["1h", "../x", "a'b", 'a"b', "`", "--", "\x00", "b", "", "csv", "string", "2024-01-01T00:00:00Z"]).map(
            lambda text: '"' + text.encode("unicode_escape").decode().replace("\\x", "\\u00").replace('"', '\\"') + '"'
        ),
        st.integers(-(2**70), 2**70).map(str),
        st.sampled_from(["true", "inf", "nan", "1e400", "1979-05-27T07:32:00Z", "07:32:00"]),
    ),
    lambda inner: st.lists(inner, max_size=3).map(lambda parts: "[" + ", ".join(parts) + "]"),
    max_leaves=6,
)
KEYS = [
    *sorted(set(re.findall(r"^(\w+) = ", BASE, flags=re.MULTILINE))),
    "retain", "options", "files", "max_ahead", "timezone", "grid", "max_record", "memory", "timeout", "sql", "search_key",
]  # fmt: skip
SECTIONS = ("warehouse", "streams.a", "sql", "views.v", "spark", "x")


@fuzzed(150)
@given(key=st.sampled_from(KEYS), value=values, section=st.sampled_from(SECTIONS))
@example(key="grid", value="[1e400, nan]", section="streams.a")
@example(key="options", value='[["a"]]', section="streams.a")
@example(key="sql", value='"SELECT ' + "(" * 200 + '"', section="views.v")
def test_any_value_of_any_key(tmp_path_factory: pytest.TempPathFactory, key: str, value: str, section: str) -> None:
    """A key with any value in any section is loaded, or refused as a configuration error."""
    rest = re.sub(rf"^{key} = .*\n", "", BASE, flags=re.MULTILINE)
    head = f"[{section}]\n"
    content = rest.replace(head, f"{head}{key} = {value}\n") if head in rest else rest + f"{head}{key} = {value}\n"
    try:
        loaded(tmp_path_factory.getbasetemp(), content)
    except ConfigurationError as error:
        assert error.problems  # noqa: PT017 - either outcome is right


@fuzzed(100)
@given(st.binary(max_size=300))
@example(b"[" * 3000)
@example(b"\xef\xbb\xbf[warehouse]\nroot = 1979-05-27")
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """A file of any bytes is refused."""
    with pytest.raises(ConfigurationError):
        loaded(tmp_path_factory.getbasetemp(), content)


def test_sizes_and_bounds() -> None:
    """Sizes have units; what reading takes from an unchecked table is the same."""
    assert [parse_size(text) for text in ("1KB", "16MB", "2GiB")] == [1000, 16_000_000, 2**31]
    for text in ("", "1", "1 GB", "-1GB", "1e3MB", "9" * 5000 + "GB", "2TB", 5, None, "1B"):
        with pytest.raises(ValueError, match="is no size"):
            parse_size(text)
    assert SqlBounds.of(tomllib.loads('memory = "1GB"\ntimeout = "5s"')) == SqlBounds(10**9, 10 * 10**9, 5_000_000)


HEADERS = {
    "a quote that ends a key": 'k"" = ""int""\n[spark]\n',
    "a section": "]\n[spark]\n",
    "a comment": "k # ",
    "a backslash": "k\\",
    "a terminal escape": "k\x1b[31m",
}


@pytest.mark.parametrize("name", HEADERS.values(), ids=list(HEADERS))
def test_a_file_for_init_cannot_write_configuration(tmp_path: Path, name: str) -> None:
    """Whatever the columns and the file are called, the proposal declares columns and nothing else."""
    source = tmp_path / 'x"]\n[spark].csv'
    source.write_text(f'"{name}",ts,v\na,2024-01-01T00:00:00Z,1\nb,2024-01-01T01:00:00Z,2\n')
    directory = tmp_path / "project"
    try:
        write_project(directory, None, source)
    except UsageError:
        return
    assert load_catalog(directory).spark == ()
    assert set(tomllib.loads((directory / "warehouse.toml").read_text())) <= {"warehouse", "spark", "streams"}


@pytest.mark.parametrize("content", [b"", b"\0" * 1000, b'{"a":' * 5000, b"\xff\xfe" * 500, b"k,ts\n" + b"x" * 2_000_000])
@pytest.mark.parametrize("ending", ["csv", "json", "parquet", "csv.gz"])
def test_init_from_a_file_of_anything(tmp_path: Path, content: bytes, ending: str) -> None:
    """A file that is not what its name says is named as such."""
    (tmp_path / f"x.{ending}").write_bytes(content)
    with pytest.raises(WarehouseError, match="x"):
        write_project(tmp_path / "project", None, tmp_path / f"x.{ending}")
    assert not (tmp_path / "project/warehouse.toml").exists()
