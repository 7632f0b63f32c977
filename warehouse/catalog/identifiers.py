"""Quotes names for Spark SQL."""

__all__ = ["quoted"]


def quoted(name: str) -> str:
    """Return a column name as a Spark SQL identifier.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"
