"""Coalesced tables, the pure parts: what one holds, and the SQL that makes its rows of points, in Spark and in DuckDB."""
