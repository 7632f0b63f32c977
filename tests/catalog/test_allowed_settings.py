from __future__ import annotations

import pytest

from warehouse.catalog.allowed_settings import duplicate_options, headerless_fault, option_fault, spark_fault, value_fault
from warehouse.storage.session import owned_settings


@pytest.mark.parametrize("name", sorted(owned_settings()))
def test_settings_of_the_session(name: str) -> None:
    """What the Spark session is started with cannot be set by a project."""
    assert spark_fault(name) is not None


@pytest.mark.parametrize(
    "name",
    [
        "spark.sql.session.timeZone",
        "spark.sql.ansi.enabled",
        "spark.sql.extensions",
        "spark.sql.catalog.spark_catalog",
        "spark.sql.parquet.outputTimestampType",
        "spark.sql.timestampType",
        "spark.sql.caseSensitive",
        "spark.sql.legacy.timeParserPolicy",
        "spark.databricks.delta.properties.defaults.enableDeletionVectors",
        "spark.databricks.delta.replaceWhere.constraintCheck.enabled",
        "spark.hadoop.parquet.block.size",
    ],
)
def test_owned_settings(name: str) -> None:
    """Settings that tables depend on are refused with a reason."""
    fault = spark_fault(name)
    assert fault is not None
    assert fault.allowed.startswith("not this one: ")


@pytest.mark.parametrize(
    "name",
    [
        "spark.master",
        "spark.driver.memory",
        "spark.sql.shuffle.partitions",
    ],
)
def test_free_settings(name: str) -> None:
    """Settings of size and place are the user's."""
    assert spark_fault(name) is None


def test_other_names_are_no_settings() -> None:
    """Spark ignores names that do not begin with `spark.`, so they are refused."""
    fault = spark_fault("driver.memory")
    assert fault is not None
    assert fault.suggestion == "spark.driver.memory"


@pytest.mark.parametrize(
    ("name", "format_", "allowed", "nearest"),
    [
        ("header", "csv", "columns are matched by the names in the header", None),
        ("HEADER", "csv", "columns are matched by the names in the header", None),
        ("mode", "csv", "rejected row", None),
        ("columnNameOfCorruptRecord", "json", "rejected rows", None),
        ("timeZone", "csv", "`timezone`", None),
        ("inferSchema", "csv", "declares names and types", None),
        ("schema", "json", "declares names and types", None),
        ("enforceSchema", "csv", "names in the header", None),
        ("multiLine", "parquet", "which is of CSV and JSON", None),
        ("lineSep", "csv", "a record is a line", None),
        ("pathGlobFilter", "csv", "`files`", None),
        ("ignoreCorruptFiles", "parquet", "never skipped", None),
        ("mergeSchema", "parquet", "declares names", None),
        ("delimeter", "csv", "maxColumns", "delimiter"),
        ("delimiter", "json", "allowComments", None),
        ("delimiter", "parquet", "no option with format parquet", None),
    ],
)
def test_owned_options(name: str, format_: str, allowed: str, nearest: str | None) -> None:
    """Reader options that the warehouse decides, or the format does not know, are refused with a reason."""
    fault = option_fault(name, format_)
    assert fault is not None
    assert allowed in fault.allowed
    assert fault.suggestion == nearest


@pytest.mark.parametrize(
    ("name", "format_"),
    [("delimiter", "csv"), ("SEP", "csv"), ("timestampFormat", "json"), ("nullValue", "csv"), ("nullValue", None)],
)
def test_free_options(name: str, format_: str | None) -> None:
    """Options of how text is written are the user's, in any case."""
    assert option_fault(name, format_) is None


def test_one_option_in_two_spellings() -> None:
    """An option given twice would be settled in silence."""
    (fault,) = duplicate_options(["sep", "quote", "delimiter"])
    assert fault.found == '"sep" and "delimiter", which are the same option'
    assert len(list(duplicate_options(["quote", "QUOTE"]))) == 1


@pytest.mark.parametrize("value", ["", "a,,b", "a,b,a"])
def test_names_of_files_without_a_header(value: str) -> None:
    """Each field has one, and no other has it; in UTF-16, files need a header."""
    assert value_fault("names", "at, host") is None
    fault = value_fault("names", value)
    assert fault is not None
    assert "each once" in fault.allowed
    assert headerless_fault([("names", "a,b"), ("charset", "UTF-16LE")]) is not None
    assert headerless_fault([("names", "a,b"), ("encoding", "windows-1252")]) is None
