"""Erasing: rows removed physically, from everything under the root that holds them, with proof and receipt."""
