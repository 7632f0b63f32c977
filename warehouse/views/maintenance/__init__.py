"""Keeps a node up to date: its inputs, the rows that it gains and loses, and their places in its table."""
