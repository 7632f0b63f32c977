"""Whether a view is its query: what Spark is asked, and how the answers are compared."""
