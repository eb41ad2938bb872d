"""SurrealDB's post on context layers: requirements and customer stories, nothing measured.

Backs     surrealdb/sub-ms-context · one-query · tencent-consolidation
Question  None that a number could answer. The claims are recorded, their relays are checked, and the mechanism that would
          test them is named; until it exists they stay untested.
"""

from __future__ import annotations

from kb.repro.harness.exact import exact, no_figure, planned

CLAIMS = (
    "surrealdb/sub-ms-context",
    "surrealdb/one-query",
    "surrealdb/tencent-consolidation",
)
LEVELS = ("derived",)
NEEDS = ()

cases, check, measure = exact(())


judge = planned(
    "context assembly over an embedded store, one statement against three, timed on this machine",
    "在嵌入式存储上组装 context，一条语句对三条，并计时",
)
figure = no_figure
