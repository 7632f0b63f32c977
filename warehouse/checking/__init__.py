"""Verifies a warehouse without Java: its records, its tables' logs, its files, and the place of each row.

Everything is read as any other reader would read it, and compared with the invariants in the modules' docstrings; nothing is
written. Repairs (:mod:`warehouse.operations.repair`) are a separate verb that needs the writer lock.
"""
