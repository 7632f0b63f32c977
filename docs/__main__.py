"""``python -m docs [DIRECTORY]`` makes the site, by default in build/site; a broken link or an unlisted page is an error."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.cmd.build import main

HERE = Path(__file__).parent
TARGET = sys.argv[1] if len(sys.argv) > 1 else str(HERE.parent / "build" / "site")

sys.exit(main(["-b", "html", "-W", "--keep-going", "-q", "-d", f"{TARGET}.cache", str(HERE), TARGET]))
