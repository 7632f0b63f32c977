"""Verifying a warehouse without Java: its records, its tables' logs, its files, each row's place; and what may be repaired.

Everything is read as any other reader would read it and compared with the invariants that the modules state; nothing is
written. What :mod:`warehouse.checking.repair` does is a verb of its own and needs the writer lock.
"""
