"""LLMs and graphs, arxiv:2606.11560: a tutorial without numbers.

Backs     llms-graphs/three-synergies · venue · graph-retrieval-helps-multihop
Question  None that a number could answer. The claims are recorded, their relays are checked, and the mechanism that would
          test them is named; until it exists they stay untested.
"""

from __future__ import annotations

from kb.repro.harness.exact import exact, no_figure, planned

CLAIMS = (
    "llms-graphs/three-synergies",
    "llms-graphs/venue",
    "llms-graphs/graph-retrieval-helps-multihop",
)
LEVELS = ("derived",)
NEEDS = ()

cases, check, measure = exact(())


judge = planned(
    "a retrieval test over the base's own links: multi-hop questions answered by graph walks and by flat search",
    "以本库自身链接做检索测试：多跳问题分别用图游走与平面检索回答",
)
figure = no_figure
