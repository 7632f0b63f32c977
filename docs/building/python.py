"""The page on the Python interface: directives that Sphinx fills from docstrings."""

from __future__ import annotations

__all__ = ["CLASSES", "python_page"]

CLASSES = (
    ("The warehouse", "warehouse.project.Warehouse"),
    ("Answers", "warehouse.serving.answer.Answer"),
    ("A reader of one epoch", "warehouse.serving.reader.Reader"),
    ("What an update tells", "warehouse.operations.update.UpdateReport"),
)
"""What is documented, with its heading: the entry point, and what its methods return."""
_BEGIN = """# Python

Made from the docstrings. `from warehouse import Warehouse, WarehouseError, Transient` is all that most programs need; reading
imports no Spark. Every error derives from `WarehouseError`; those worth another try also from `Transient`
([error codes](errors.md)). Instants are ISO 8601 texts or integers of microseconds since 1970, UTC."""


def python_page() -> str:
    """Return the page."""
    parts = [_BEGIN]
    for heading, name in CLASSES:
        parts.append(f"## {heading}\n\n```{{eval-rst}}\n.. autoclass:: {name}\n   :members:\n   :inherited-members:\n```")
    return "\n\n".join(parts) + "\n"
