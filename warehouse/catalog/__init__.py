"""Declarations: ``warehouse.toml`` to frozen values, and whether they still fit the tables on disk.

``load`` reads and checks the file, ``drift`` compares it with what an epoch recorded, ``initialise`` writes a new
project. May import ``warehouse.time``, ``warehouse.errors`` and the pure ``warehouse.layout``; sqlglot and duckdb only
where an expression or a file is looked at. Nothing here starts Spark or reads a clock.
"""
