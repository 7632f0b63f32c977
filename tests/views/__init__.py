"""Views: what their parts compute, without Spark first."""
