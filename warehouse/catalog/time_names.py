"""What columns are called that are times, ends or lifetimes of rows: names as words in small letters, joined by underscores."""

from __future__ import annotations

import re

__all__ = ["ARRIVAL_NAME", "EXPIRY_NAME", "LIFETIME_NAME"]

ARRIVAL_NAME = re.compile(
    r"(^|_)(ts|time|timestamp|at|arriv\w*|start\w*|begin\w*|creat\w*|seen|event|from|depart\w*)(_|$)"
)
EXPIRY_NAME = re.compile(
    r"(^|_)(exp\w*|end\w*|until|valid|to|stop\w*|finish\w*|due|deadline|bis|leav\w*|land\w*|close\w*)(_|$)"
)
LIFETIME_NAME = re.compile(
    r"(^|_)(ttls?|lifetimes?|life|duration|timeout|max_?age|validity|lease|hold|dauer|g(?:ü|ue)ltigkeit\w*|haltbarkeit|validez|expires_in|remaining|valid_for|keep_alive)(_|$)"
)
