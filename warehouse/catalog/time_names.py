"""Names of columns with times, ends or lifetimes of rows, in lower case with underscores; names of zones."""

from __future__ import annotations

import re

__all__ = ["ARRIVAL_NAME", "EXPIRY_NAME", "LIFETIME_NAME", "SEVERAL", "SEVERAL_ZONES"]

SEVERAL = "ACT|AET|AGT|AMT|ART|AST|BET|BST|CAT|CNT|CST|CTT|EAT|ECT|GST|IET|IST|MIT|NET|NST|PLT|PNT|PRT|SST|VST|WST"
"""Names that several zones have; Java takes one of them without a word: BST is Bangladesh's, AST Alaska's."""
SEVERAL_ZONES = re.compile(rf"[0-9]\s*({SEVERAL})\s*$")
"""A time that ends with such a name."""

ARRIVAL_NAME = re.compile(
    r"(^|_)(ts|time|timestamp|at|arriv\w*|start\w*|begin\w*|creat\w*|seen|event|from|depart\w*)(_|$)"
)
EXPIRY_NAME = re.compile(
    r"(^|_)(exp\w*|end\w*|until|valid|to|stop\w*|finish\w*|due|deadline|bis|leav\w*|land\w*|close\w*)(_|$)"
)
LIFETIME_NAME = re.compile(
    r"(^|_)(ttls?|lifetimes?|life|duration|timeout|max_?age|validity|lease|hold|dauer|g(?:ü|ue)ltigkeit\w*|haltbarkeit|validez|expires_in|remaining|valid_for|keep_alive)(_|$)"
)
