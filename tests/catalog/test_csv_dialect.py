"""``init --from`` with CSV as it comes: comment lines, decimal commas, encodings."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

import pytest

from tests.catalog.test_initialise import proposed
from tests.hostile.test_bounds import COMPRESS
from warehouse.catalog.allowed_settings import value_fault
from warehouse.catalog.encodings import encoding_fault
from warehouse.catalog.sniff import sniff
from warehouse.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

LINES = ["Gerät;Wert;am", *(f"g{i % 3};1.23{i},5;2024-05-01 00:0{i}:00" for i in range(9))]


@pytest.mark.parametrize(
    ("written", "encoding"),
    [
        ("\n".join(LINES).encode("latin-1"), "ISO-8859-1"),
        ("\r\n".join([*LINES, "„x“;0,5;2024-05-01 00:09:00"]).encode("cp1252"), "windows-1252"),
        ("\ufeff" + "\r\n".join(LINES), "UTF-16"),
        (codecs.BOM_UTF16_BE + "\n".join(LINES).encode("utf-16-be"), "UTF-16"),
        ("\n".join(LINES).encode("utf-16-le"), "UTF-16LE"),
        ("\n".join(LINES), None),
    ],
)
def test_encodings_and_decimal_commas(tmp_path: Path, written: bytes | str, encoding: str | None) -> None:
    """The options by which the file is read are proposed; guesses are marked."""
    source = tmp_path / "werte.csv"
    source.write_bytes(written if isinstance(written, bytes) else written.encode("utf-16-le" if encoding else "utf-8"))
    catalog = proposed(source)
    stream = catalog.streams[0]
    assert [(column.name, column.type) for column in stream.columns] == [
        ("Gerät", "string"), ("Wert", "double"), ("am", "timestamp"),
    ]  # fmt: skip
    expected = {"delimiter": ";", "decimal": ",", "encoding": encoding}
    assert dict(stream.options) == {key: value for key, value in expected.items() if value}
    assert ("(?) encoding" in catalog.file.read_text()) == (encoding in ("ISO-8859-1", "windows-1252"))


def test_addresses_beside_decimal_commas_are_no_numbers(tmp_path: Path) -> None:
    """Points between groups of three digits alone separate thousands."""
    source = tmp_path / "leases.csv"
    lines = [f"10.0.0.{i};1.23{i};2024-05-01 0{i}:00:00;{i},5" for i in range(1, 9)]
    source.write_text("\n".join(["host;bytes;start;load", *lines]))
    columns = proposed(source).streams[0].columns
    types = {"host": "string", "bytes": "bigint", "start": "timestamp", "load": "double"}
    assert {column.name: column.type for column in columns} == types


@pytest.mark.parametrize(
    ("before", "after", "comment"),
    [("# made by a logger\n# 9 values\n", "", "#"), ("% one note, alone\n", "", "%"), ("", "# end\n", "#"), ("", "", None)],
)
def test_comment_lines(tmp_path: Path, before: str, after: str, comment: str | None) -> None:
    """Before the header, or behind the records; the header keeps its names."""
    source = tmp_path / "x.csv"
    source.write_text(f"{before}name,at\n" + "".join(f"n{i},2024-05-01 00:0{i}:00\n" for i in range(9)) + after)
    stream = proposed(source).streams[0]
    assert dict(stream.options).get("comment") == comment
    assert [column.name for column in stream.columns] == ["name", "at"]


def test_a_header_may_begin_with_a_comment_sign(tmp_path: Path) -> None:
    """One line with the sign, of as many fields as the records, is the header."""
    source = tmp_path / "x.csv"
    source.write_text("#name,at\n" + "".join(f"n{i},2024-05-01 00:0{i}:00\n" for i in range(9)))
    stream = proposed(source).streams[0]
    assert (stream.options, [column.source_name for column in stream.columns]) == ((), ["#name", "at"])


@pytest.mark.parametrize("values", [("1,234", "12,345"), ("1,5", "2.5")])
def test_commas_that_are_not_surely_decimal(tmp_path: Path, values: tuple[str, str]) -> None:
    """Thousands, or numbers of both kinds, stay text."""
    source = tmp_path / "x.tsv"
    source.write_text("name\tn\tat\n" + "".join(f"a\t{values[i % 2]}\t2024-05-01 00:0{i}:00\n" for i in range(9)))
    stream = proposed(source).streams[0]
    assert "decimal" not in dict(stream.options)
    assert stream.columns[1].type == "string"


def test_a_title_before_the_header_is_told(tmp_path: Path) -> None:
    """A line that updates would take for the header is refused at once, with a remedy."""
    source = tmp_path / "x.csv"
    source.write_text("Report of May\n\nname;at\n" + "".join(f"n{i};2024-05-01 00:0{i}:00\n" for i in range(9)))
    with pytest.raises(UsageError, match=r'"Report of May"; remove .* or begin those lines with #'):
        proposed(source)


def test_what_options_may_say() -> None:
    """Encodings that both readers know by any of their names, a comma or a point; the nearest is named."""
    for name in ("latin-1", "windows-1252", "CP1252", "utf-16", "UTF-16LE", "Shift_JIS", "ascii", "utf8"):
        assert encoding_fault(name) is None, name
    assert "windows-1252" in str(value_fault("encoding", "windows1252x"))
    assert value_fault("encoding", "utf-7") is not None
    assert value_fault("decimal", ",") is None
    assert '"," where' in str(value_fault("Decimal", ";"))


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".zst"])
def test_compressed_files(tmp_path: Path, ending: str) -> None:
    """CSV in another encoding, and JSON lines, by any codec that updates read."""
    source = tmp_path / f"werte.csv{ending}"
    source.write_bytes(COMPRESS[ending]("\n".join(LINES).encode("latin-1")))
    stream = proposed(source).streams[0]
    assert (stream.files, stream.columns[0].name, dict(stream.options)["decimal"]) == (f"*.csv{ending}", "Gerät", ",")
    (tmp_path / "json").mkdir()
    source = tmp_path / "json" / f"x.jsonl{ending}"
    source.write_bytes(COMPRESS[ending](b'{"id":"a","at":"2024-05-01T00:00:00Z"}\n' * 3))
    assert proposed(source).streams[0].files == f"*.jsonl{ending}"


@pytest.mark.parametrize("word", ["NA", "N/A", "NULL", "-"])
def test_a_word_for_what_is_missing(tmp_path: Path, word: str) -> None:
    """It is declared where a column would be text for its sake only, and is a value elsewhere: NA is Namibia, too."""
    lines = [f"{'NA' if i % 3 else 'DE'},{word if i % 4 == 0 else i / 2},2024-05-01 00:00:{i:02}" for i in range(40)]
    source = tmp_path / "gusts.csv"
    source.write_text("\n".join(["country,gust,at", *lines]) + "\n")
    stream = proposed(source).streams[0]
    kinds = {column.name: column.type for column in stream.columns}
    assert (kinds["gust"], stream.options, stream.search_key) == ("double", (("nullValue", word),), ("country",))
    source.write_text("\n".join(["country,at", *(f"{word},2024-05-01 00:00:{i:02}" for i in range(40))]) + "\n")
    (tmp_path / "project" / "warehouse.toml").rename(tmp_path / "before.toml")
    (tmp_path / "project" / "landing" / "gusts" / "gusts.csv").unlink()
    assert proposed(source).streams[0].options == ()


def test_lines_that_end_in_several_ways(tmp_path: Path) -> None:
    """As in a file whose last line was added by another program; DuckDB's strict reader refuses them."""
    source = tmp_path / "mixed.csv"
    source.write_bytes(b"k,at,n\r\n" + b"x,2026-01-01 00:00:00,5\r\n" * 3 + b"y,2026-01-01 00:01:00,6\n")
    stream = proposed(source).streams[0]
    assert [(column.name, column.type) for column in stream.columns] == [("k", "string"), ("at", "timestamp"), ("n", "bigint")]


def test_records_that_do_not_fit_are_counted(tmp_path: Path) -> None:
    """A word far behind the beginning does not turn a column of numbers into text; its row does not fit."""
    source = tmp_path / "readings.csv"
    rows = [f"s{number % 7},2026-01-01 00:00:{number % 60:02},{number / 8}" for number in range(30_000)]
    source.write_text("\n".join(["k,at,v", *rows, *["s1,2026-01-01 01:00:00,nil"] * 4, "s2,2026-01-01 02:00:00,"]))
    assert sniff(source).unfit == (4, "v", "nil")
    source.write_text("\n".join(["k,at,v", *rows]))
    assert sniff(source).unfit == (0, "", "")


def test_records_that_lack_fields(tmp_path: Path) -> None:
    """The delimiter is the header's, although most records end early; these are counted, since an update rejects them."""
    short = "".join(f"n{i},x{i},2024-05-{i + 1:02d}\n" for i in range(20))
    whole = "".join(f"m{i},y{i},2024-06-{i + 1:02d},2025-06-01,2026-06-01\n" for i in range(7))
    source = tmp_path / "releases.csv"
    source.write_text(f"name,word,created,ends,ends-late\n{short}{whole}")
    sniffed = sniff(source)
    assert sniffed.options == ()
    assert [column.source or column.name for column in sniffed.columns] == ["name", "word", "created", "ends", "ends-late"]
    assert (sniffed.rows, sniffed.unfit) == (7, (20, "", "n0,x0,2024-05-01"))
    text = proposed(source).file.read_text()
    assert "20 other records would be rejected, for they do not have the 5 fields of the others, such as" in text
