"""Hits of an engine are counted, compared and judged; the server here counts them by a way of its own."""

import pytest

from kb.model import Level, Outcome
from kb.repro import engine_prefix
from tests.repro.engines import hostile
from tests.repro.engines.records import bench, verdict


class TestPrefixHits:
    """The server counts hits by a way of its own: every beginning of a prompt that fills whole pages, in a set."""

    @pytest.fixture
    def taken(self, serve, monkeypatch):
        monkeypatch.setattr(engine_prefix, "PREFIXES", (100, 256))

        def take(factor=1.0):
            server = serve(hostile.good)
            server.hit_factor = factor
            return list(engine_prefix.measure(engine_prefix.Sweep(pattern="page-32"), bench(server.url)))

        return take

    def test_of_another_engine_are_those_of_the_page_hashes(self, taken):
        found = taken()
        assert len(found) == 6
        for one in found:
            assert one.samples[0] == pytest.approx(one.expected, abs=1e-12)
            assert one.level is Level.PROXY

    def test_depend_on_whole_pages_only(self):
        assert engine_prefix.closed_form(100, 0.95, 32) == pytest.approx(18 / 20 * 96 / 170)
        assert engine_prefix.closed_form(100, 0.95, 128) == 0

    def said(self, page, *, on="True"):
        case = engine_prefix.Said(prefix_caching=on, hash="sha256", page_tokens=page)
        return [bench().record("tokens", case, [page]), bench().record("share", case, [0.92])]

    def loads(self, off=0.0, page=16):
        case = engine_prefix.Load(pattern="as-installed", prefix=512, overlap=0.6, page_tokens=page)
        return [bench().record("hit_rate", case, [0.5 + off], expected=0.5)]

    @pytest.mark.parametrize(
        ("page", "on", "off", "outcome"),
        [
            pytest.param(16, "True", 0.0, Outcome.HOLDS, id="as-stated"),
            pytest.param(16, "True", 0.019, Outcome.HOLDS, id="within-two-points"),
            pytest.param(128, "True", 0.0, Outcome.PARTLY, id="another-page"),
            pytest.param(16, "False", 0.0, Outcome.NOT_COMPARABLE, id="off"),
            pytest.param(16, "True", 0.05, Outcome.NOT_COMPARABLE, id="hits-otherwise"),
        ],
    )
    def test_and_settings_decide_the_default(self, page, on, off, outcome):
        taken = [*self.said(page, on=on), *self.loads(off, page)]
        assert verdict(engine_prefix, "vllm/prefix-cache-default", taken).verdict is outcome

    def test_a_server_somebody_else_started_says_nothing_of_defaults(self):
        found = verdict(engine_prefix, "vllm/prefix-cache-default", self.loads())
        assert found.verdict is Outcome.UNTESTED

    def test_another_share_of_memory_is_not_the_stated_one(self):
        told = self.said(16)
        assert verdict(engine_prefix, "vllm/gpu-mem-util-default", told).verdict is Outcome.HOLDS
        wrong = [one.model_copy(update={"samples": (0.9,)}) for one in told if one.metric == "share"]
        assert verdict(engine_prefix, "vllm/gpu-mem-util-default", wrong).verdict is not Outcome.HOLDS

    def test_are_drawn_beside_the_simulated_ones(self, taken):
        (drawn,) = engine_prefix.figure(taken())
        assert len(drawn.series) == 6
        assert "at most 0.00%" in drawn.alt.en
