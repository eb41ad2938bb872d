"""LLMs and graphs, arxiv:2606.11560: a tutorial without numbers.

Backs     llms-graphs/three-synergies · venue · graph-retrieval-helps-multihop
Question  None that a number could answer. The claims are recorded, their relays are checked, and the mechanism that would
          test them is named; until it exists they stay untested.
"""

from __future__ import annotations

from collections.abc import Sequence

from kb.model import Claim, Measurement, Outcome, Verdict
from kb.repro.harness.exact import exact, no_figure
from kb.repro.harness.judge import unjudged

CLAIMS = (
    "llms-graphs/three-synergies",
    "llms-graphs/venue",
    "llms-graphs/graph-retrieval-helps-multihop",
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
            "it states no measured number; planned: a retrieval test over the base's own links: multi-hop questions answered by graph walks and by flat search",
            "没有可测的数字；计划：以本库自身链接做检索测试：多跳问题分别用图游走与平面检索回答",
        )
        for claim in claims
    ]


figure = no_figure
