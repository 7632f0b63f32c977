"""Facts in, a plan out: pure functions that make the steps of an update, and explain them."""
