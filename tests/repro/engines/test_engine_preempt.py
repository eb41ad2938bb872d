"""Preemptions fall where the claim says so, or it does not hold."""

import pytest

from kb.errors import CannotRun
from kb.model import Outcome
from kb.repro import engine_preempt
from tests.repro.engines import hostile
from tests.repro.engines.records import bench, verdict


class TestPreemption:
    def counts(self, **changed):
        counted = {"base": 5, "memory": 0, "sequences": 0, "budget": 3, **changed}
        return [
            bench().record("count", pool, [counted[pool.knob]], expected=1) for pool in engine_preempt.POOLS
        ]

    def test_every_knob_must_lower_it(self):
        assert verdict(engine_preempt, "vllm/preempt-knobs", self.counts()).verdict is Outcome.HOLDS
        for knob in ("memory", "sequences", "budget"):
            found = verdict(engine_preempt, "vllm/preempt-knobs", self.counts(**{knob: 5}))
            assert found.verdict is not Outcome.HOLDS, knob

    def test_without_any_nothing_follows(self):
        found = verdict(engine_preempt, "vllm/preempt-knobs", self.counts(base=0))
        assert found.verdict is Outcome.INCONCLUSIVE
        assert verdict(engine_preempt, "vllm/preempt-recompute", self.counts()).verdict is Outcome.UNTESTED

    def test_the_event_loop_says_what_to_expect(self):
        expected = [int(engine_preempt.simulated(pool).preemptions.sum()) for pool in engine_preempt.POOLS]
        assert all(expected[0] > one > 0 for one in expected[1:])
        roomy = engine_preempt.BASE.model_copy(update={"pages": 40})
        assert not engine_preempt.simulated(roomy).preemptions.any()
        for pool in engine_preempt.POOLS:
            engine_preempt.check(pool, bench())

    def test_a_server_of_another_size_is_not_counted(self, serve):
        with pytest.raises(CannotRun, match="pages: not measured"):
            list(engine_preempt.measure(engine_preempt.BASE, bench(serve(hostile.good).url)))
