"""Answers under a budget, the pure parts: what is known of rows that were not read, and which are worth reading first."""
