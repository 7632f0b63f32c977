"""SQL to a checked operator tree: parsing, names, types, what is refused and what to write instead."""
