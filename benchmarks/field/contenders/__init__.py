"""One file for each kind of contender; :mod:`benchmarks.field.roster` lists them."""
