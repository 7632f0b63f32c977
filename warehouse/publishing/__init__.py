"""What other people's tools open: ``warehouse.duckdb``, made again for every epoch, and the snippets that read it."""
