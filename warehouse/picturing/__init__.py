"""The warehouse at a glance: figures of its tables, epochs and views, drawn as one page that needs no network."""
