"""The costs of plans and the results that they lose: join orders, places of a negation, short-lived results."""
