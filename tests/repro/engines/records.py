"""Records as a run of an engine makes them, and the verdict they lead to."""

from pathlib import Path

from kb.model import Level
from kb.repro.harness.bench import Bench, Declared
from kb.store import Base

SHIPPED = Path(__file__).parents[3] / "shared/research-kb"
CLAIMS = Base(SHIPPED).claims()
AT = "2026-07-01T00:00:00Z"


def bench(endpoint="", at=AT):
    words = dict.fromkeys(("rule", "code", "inputs", "env"), "-")
    return Bench(Declared(repro="engine", seed=0, level=Level.PROXY, at=at, **words), endpoint=endpoint)


def verdict(unit, claim, taken):
    return unit.judge([CLAIMS[claim]], taken)[0]
