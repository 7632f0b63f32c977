"""The verbs that change a warehouse: each plans, executes and reports."""
