"""Advice on a table's layout: measures its workload, fits prices, compares layouts, and finds layouts that no longer fit."""

from warehouse.advice.advise import Advice, advise, advise_load, advise_what_if
from warehouse.advice.drift import drift_signs
from warehouse.advice.what_if import WhatIf, parse_what_if

__all__ = ["Advice", "WhatIf", "advise", "advise_load", "advise_what_if", "drift_signs", "parse_what_if"]
