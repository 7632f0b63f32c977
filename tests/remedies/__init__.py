"""The advice that messages give, executed as it is printed."""
