"""The pure parts of answers under a budget: bounds for rows that were not read, and the order in which to read rows."""
