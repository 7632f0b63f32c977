"""Predicts the costs of layouts: the workload, the work of each update, prices, and the layouts to compare.

Pure: it reads no clock and no file, and fits nothing; `warehouse.advice` measures workloads and prices.
"""

from warehouse.layout.advice.candidates import candidates
from warehouse.layout.advice.choice import WORTH_IT, Evaluation, LayoutChoice, choose, evaluate
from warehouse.layout.advice.decision import TableAnswer, decision, in_words, layout_keys
from warehouse.layout.advice.footprint import MAX_EXACT_PERIODS, footprint
from warehouse.layout.advice.footprint_sums import Footprint
from warehouse.layout.advice.prices import DEFAULT_PRICES, Estimate, LayoutPrices, Pricing
from warehouse.layout.advice.work import ProbeWork, UpdateWork, busiest_task
from warehouse.layout.advice.workload import Lifetimes, Workload, shares

__all__ = [
    "DEFAULT_PRICES",
    "MAX_EXACT_PERIODS",
    "WORTH_IT",
    "Estimate",
    "Evaluation",
    "Footprint",
    "LayoutChoice",
    "LayoutPrices",
    "Lifetimes",
    "Pricing",
    "ProbeWork",
    "TableAnswer",
    "UpdateWork",
    "Workload",
    "busiest_task",
    "candidates",
    "choose",
    "decision",
    "evaluate",
    "footprint",
    "in_words",
    "layout_keys",
    "shares",
]
