"""A large token budget is judged by gaps and throughput together."""

import pytest

from kb.model import Outcome
from kb.repro import engine_chunked
from kb.repro.engines.clocked import clocked
from tests.repro.engines.records import bench, verdict


class TestTokenBudget:
    def ratios(self, gap, throughput):
        taken = []
        for name, values in (("longest-gap", gap), ("ttft", (1.0,) * 6), ("throughput", throughput)):
            taken.append(clocked(bench(), "factor", engine_chunked.Against(name=name), values, expected=2.0))
        return taken

    @pytest.mark.parametrize(
        ("gap", "throughput", "outcome"),
        [
            pytest.param((4.0, 4.1, 4.2) * 3, (1.1,) * 9, Outcome.HOLDS, id="longer-gaps-and-no-loss"),
            pytest.param((4.0, 4.1, 4.2) * 3, (0.8,) * 9, Outcome.PARTLY, id="longer-gaps-and-a-loss"),
            pytest.param(
                (4.0, 4.1, 4.2) * 3,
                (0.8, 1.1, 1.4) * 3,
                Outcome.PARTLY,
                id="longer-gaps-and-throughput-either-way",
            ),
            pytest.param((0.5, 2.0, 1.1) * 3, (1.1,) * 9, Outcome.INCONCLUSIVE, id="gaps-that-vary"),
            pytest.param((0.5, 0.6, 0.4) * 3, (1.1,) * 9, Outcome.NOT_COMPARABLE, id="shorter-gaps"),
        ],
    )
    def test_is_judged_by_gaps_and_throughput(self, gap, throughput, outcome):
        assert verdict(engine_chunked, "vllm/chunked-itl", self.ratios(gap, throughput)).verdict is outcome

    def test_the_event_loop_chunks(self):
        engine_chunked.check(engine_chunked.Pair(), bench())
