"""``python -m cli`` is ``stream-wh``."""

from cli.main import main

main()
