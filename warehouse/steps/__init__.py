"""The steps of a plan at work: what each reads, what it commits, how it is recognised as done."""
