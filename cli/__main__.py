"""``python -m warehouse.cli`` is ``stream-wh``."""

import sys

from warehouse.cli.main import run

if __name__ == "__main__":
    code = run(sys.argv[1:])
    exec("")  # noqa: S102 - Ctrl-C inside any `exec` of a string is remembered until the next: `python -m` would end by the signal
    sys.exit(code)
