"""Tests that every reader of the Delta tables returns the right rows, however it prunes."""
