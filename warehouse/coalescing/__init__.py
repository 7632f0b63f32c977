"""The pure parts of coalesced tables: their definition, and the SQL that makes their rows from points, in Spark and in DuckDB."""
