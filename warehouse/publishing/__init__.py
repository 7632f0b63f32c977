"""What other people's tools open: ``warehouse.duckdb``, made anew for every epoch, and the snippets that read it."""
