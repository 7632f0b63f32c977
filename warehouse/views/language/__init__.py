"""SQL to a checked operator tree: parsing, names, types, and refusals that say what to write instead."""
