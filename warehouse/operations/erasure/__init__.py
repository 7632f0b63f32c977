"""Rows removed physically: the verb, its proof and its receipt."""
