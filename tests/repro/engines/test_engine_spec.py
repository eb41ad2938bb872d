"""A speed-up that fades holds, one that grows does not; both crossovers are named."""

import pytest

from kb.model import Outcome
from kb.repro import engine_spec
from kb.repro.engines.clocked import clocked
from tests.repro.engines.records import bench, verdict


class TestSpeculation:
    def latencies(self, gains, predicted):
        found = []
        for batch, gain, said in zip(engine_spec.BATCHES, gains, predicted, strict=True):
            plain, drafted = (engine_spec.Load(name=name, load=batch) for name in ("plain", "drafted"))
            found += [
                clocked(bench(), "e2e_latency", plain, [2.0], expected=2.0),
                clocked(bench(), "e2e_latency", drafted, [2.0 / gain], expected=2.0 / said),
            ]
        return found

    FADING = (1.6, 1.4, 1.1, 0.9, 0.8)
    GROWING = FADING[::-1]

    def test_that_fades_holds_and_names_both_crossovers(self):
        found = verdict(engine_spec, "sd-latency/decay-with-load", self.latencies(self.FADING, self.FADING))
        assert found.verdict is Outcome.HOLDS
        assert "+0%, within 30 %" in found.reason

    def test_that_grows_does_not_hold(self):
        found = verdict(engine_spec, "sd-latency/decay-with-load", self.latencies(self.GROWING, self.FADING))
        assert found.verdict is not Outcome.HOLDS

    def test_crossover_is_where_the_gain_is_one(self):
        assert engine_spec.crossover({1: 2.0, 2: 1.5, 4: 0.5}) == pytest.approx(2 * 2**0.5)
        assert engine_spec.crossover({1: 2.0, 2: 1.5}) is None

    @pytest.mark.parametrize("rate", [0.0, 0.3, 0.7, 1.0])
    def test_share_of_accepted_drafts_gives_the_chance_of_each(self, rate):
        share = sum(rate**i for i in range(1, 5)) / 4
        assert engine_spec.per_token_rate(share, 4) == pytest.approx(rate, abs=1e-6)
