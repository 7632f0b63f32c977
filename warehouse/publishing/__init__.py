"""Files for other tools: ``warehouse.duckdb``, which every epoch replaces, and the snippets that read it."""
