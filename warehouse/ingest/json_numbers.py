"""Which numbers of JSON double precision would change, as patterns that Python and Spark both read.

They are looked for in the text of a record, so that a text that looks like such a number counts as well: it costs time only.
"""

from __future__ import annotations

__all__ = ["BEYOND_VARIANT", "LONG_DECIMAL"]

LONG_DECIMAL = r"[\[:,]\s*-?(?=[0-9.]{17})[0-9]+\.[0-9]"
"""Numbers with decimals and more digits than double precision has."""
BEYOND_VARIANT = r"[\[:,]\s*-?(?:(?=[0-9.]{40})[0-9]*\.[0-9]|[0-9]{39}|(?=[0-9.]{17})[0-9]+\.[0-9]+[eE])"
"""Numbers of more digits than a value of Spark's type `variant` has, or with more than double precision and an exponent."""
