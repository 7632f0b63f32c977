"""Entry points for spark-submit and schedulers; each passes its arguments to the command of the same name."""
