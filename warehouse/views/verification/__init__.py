"""Verifies that a view equals its query: the query for Spark, and the comparison of the answers."""
