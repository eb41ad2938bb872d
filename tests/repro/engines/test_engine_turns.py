"""Chats that do not fit hit less; rates of another engine are never judged."""

import numpy as np

from kb.model import Outcome
from kb.repro import engine_turns
from kb.repro.engines.clocked import clocked
from tests.repro.engines.records import bench, verdict


class TestChats:
    def test_hit_less_the_fewer_fit(self):
        order = engine_turns.order_of_turns(np.random.default_rng(3))
        rates = [engine_turns.hit_rate(engine_turns.computed_tokens(order, slots)) for slots in (1, 2, 4, 6)]
        assert rates == sorted(rates)
        engine_turns.check(engine_turns.Slots(slots=2), bench())

    def test_never_judge_the_rates_of_another_engine(self):
        taken = [
            clocked(bench(), "throughput", engine_turns.Slots(slots=slots), [rate], expected=rate)
            for slots, rate in ((1, 10.0), (6, 30.0))
        ]
        found = verdict(engine_turns, "medium-occlubssk/vllm-concurrent", taken)
        assert found.verdict is Outcome.NOT_COMPARABLE
        assert "30.0 tok/s with room for all 6" in found.reason
