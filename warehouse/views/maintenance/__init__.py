"""Keeping a node up to date in Spark: what it reads, what came and went, where its rows lie."""
