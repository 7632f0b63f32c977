"""``live/NAME``: a Delta table of exactly the live rows of a table, for tools that read Delta and know nothing else."""
