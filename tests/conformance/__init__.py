"""Whether every reader of the Delta tables gives the right rows, with whatever it prunes."""
