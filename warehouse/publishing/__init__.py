"""What other tools open: ``warehouse.duckdb``, which every epoch replaces, and the snippets that read it."""
