"""A root in an object store: paths with pathlib's methods, conditional puts, copies on the local disk."""
