"""The execution of plans: the inputs of each kind of step, its commit, and how a commit is recognised as done."""
