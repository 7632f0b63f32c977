"""Live tables: Delta tables of exactly the live rows."""
