"""Files of every day, from other packages and invented, through the whole door."""
