"""Views: SQL -> plan -> update patterns -> maintenance."""
