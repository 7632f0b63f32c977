"""What plans cost and lose: join orders, placements of a negation, short-lived results."""
