"""Moving the windows: plans, the steps they consist of, their execution, epochs, the writer lock, vacuum."""
