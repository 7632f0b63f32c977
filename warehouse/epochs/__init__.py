"""Committed states: their records, the journal of these, known landing files, crash points, and the writer lock."""
