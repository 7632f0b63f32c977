"""Examples to copy into a folder of DAGs."""
