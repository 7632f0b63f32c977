"""Advice on a table's layout: what was measured, prices fitted to it, the layouts compared, and when one no longer fits."""

from warehouse.advice.advise import Advice, advise, advise_load, suppose
from warehouse.advice.drift import drift_signs
from warehouse.advice.what_if import WhatIf, parse_what_if

__all__ = ["Advice", "WhatIf", "advise", "advise_load", "drift_signs", "parse_what_if", "suppose"]
