"""The report: figures of tables, epochs and views, drawn as one page that needs no network."""
