"""RAIDS, arxiv:2606.21831: a vision without numbers.

Backs     raids/contract · preservation
Question  None that a number could answer. The claims are recorded, their relays are checked, and the mechanism that would
          test them is named; until it exists they stay untested.
"""

from __future__ import annotations

from kb.repro.harness.exact import exact, no_figure, planned

CLAIMS = (
    "raids/contract",
    "raids/preservation",
)
LEVELS = ("derived",)
NEEDS = ()

cases, check, measure = exact(())


judge = planned(
    "a small pipeline whose operators carry support, constraint and actionability, with each state mutated",
    "一个小型流水线，算子带支撑、约束、可行动性状态，并逐一变异",
)
figure = no_figure
