"""SurrealDB's post on context layers: requirements and customer stories, nothing measured.

Backs     surrealdb/sub-ms-context · one-query · tencent-consolidation
Question  None that a number could answer. The claims are recorded, their relays are checked, and the mechanism that would
          test them is named; until it exists they stay untested.
"""

from __future__ import annotations

from collections.abc import Sequence

from kb.model import Claim, Measurement, Outcome, Verdict
from kb.repro.harness.exact import exact, no_figure
from kb.repro.harness.judge import unjudged

CLAIMS = (
    "surrealdb/sub-ms-context",
    "surrealdb/one-query",
    "surrealdb/tencent-consolidation",
)
LEVELS = ("derived",)
NEEDS = ()

cases, check, measure = exact(())


def judge(claims: Sequence[Claim], taken: Sequence[Measurement]) -> list[Verdict]:
    """Say what would test each claim."""
    del taken
    return [
        unjudged(
            claim,
            Outcome.UNTESTED,
            "it states no measured number; planned: context assembly over an embedded store, one statement against three, timed on this machine",
            "没有可测的数字；计划：在嵌入式存储上组装 context，一条语句对三条，并计时",
        )
        for claim in claims
    ]


figure = no_figure
