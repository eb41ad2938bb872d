"""Fits find what made the numbers, and never ask for more than the hardware has."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.errors import BadInput, WrongResult
from kb.repro.sim.cost import Counts, Roofline, step_cost
from kb.repro.sim.fit import fit_roofline, fit_steps
from kb.repro.sim.profiles import LayerProfile, grid
from kb.repro.sim.shapes import find_hardware, find_model
from kb.repro.sim.work import StepWork

MODEL, GPU = find_model("llama-3-8b"), find_hardware("h100")
WORKS = list(grid(2048, 64, 100_000))


@given(st.floats(1e-4, 1e-2), st.floats(0.2, 1), st.floats(0.2, 1))
def test_a_roofline_is_found_again_from_its_own_steps(t0, mfu, mbu):
    cost = step_cost(Roofline(t0, mfu, mbu), MODEL, GPU)
    found = fit_roofline(WORKS, np.array([cost.seconds(w) for w in WORKS]), MODEL, GPU)
    assert (found.t0, found.mfu, found.mbu) == pytest.approx((t0, mfu, mbu), rel=1e-4)


def test_the_loops_form_of_a_roofline_adds_up_to_flops_and_bytes():
    counts, roofline = Counts.of(MODEL), Roofline(1e-3, 0.5, 0.8)
    cost = step_cost(roofline, MODEL, GPU)
    for work in WORKS:
        expected = 1e-3 + counts.flops(work) / (0.5 * GPU.flops) + counts.bytes(work) / (0.8 * GPU.bandwidth)
        assert cost.seconds(work) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("t0", "mfu", "mbu"), [(0, 1.01, 0.5), (0, 0.5, 1.2), (-1e-6, 0.5, 0.5), (0, 0, 0.5)]
)
def test_more_than_the_peak_is_rejected(t0, mfu, mbu):
    with pytest.raises(WrongResult, match="impossible"):
        Roofline(t0, mfu, mbu)


def test_a_table_faster_than_the_hardware_is_held_at_the_peak_and_says_so():
    cost = step_cost(Roofline(1e-3, 0.9, 0.9), MODEL, GPU)
    seconds = np.array([cost.seconds(w) / 2 for w in WORKS])
    found = fit_roofline(WORKS, seconds, MODEL, GPU)
    assert {"mfu", "mbu"} <= set(found.held)
    assert found.error > 0.1


@given(st.floats(1e-4, 1), st.floats(1e-6, 1e-2), st.floats(1e-9, 1e-4))
def test_an_engines_own_steps_give_their_coefficients_back(t0, per_token, per_kv):
    seconds = np.array([t0 + per_token * w.tokens + per_kv * w.kv_tokens for w in WORKS])
    found = fit_steps(WORKS, seconds)
    assert found.error < 1e-6
    cost = found.cost()
    assert [cost.seconds(w) for w in WORKS] == pytest.approx(seconds.tolist(), rel=1e-5)


def test_steps_that_do_not_differ_are_refused():
    with pytest.raises(WrongResult, match="not fitted"):
        fit_steps([StepWork(8)] * 5, np.ones(5))


def test_a_mixture_reads_more_weights_the_more_tokens_hit_experts():
    weights = Counts.of(find_model("mixtral-8x7b")).weights
    assert (np.diff(weights[1:]) >= 0).all()
    assert weights[1] < 0.45 * weights[-1]


@pytest.fixture
def profile(tmp_path):
    """Tables whose times are sums of what a step has, so that every look-up has one right answer."""
    layers = ("act_fn", "down_proj", "embedding", "final_layernorm", "gate_up_proj", "layernorm", "o_proj",
              "qkv_proj", "rotary_emb")  # fmt: skip
    (tmp_path / "p_dense.csv").write_text(
        "layer,tokens,time_us\n" + "".join(f"{name},{n},{n}\n" for name in layers for n in (1, 64, 2048))
    )
    (tmp_path / "p_per_sequence.csv").write_text(
        "layer,sequences,time_us\n"
        + "".join(f"{n},{s},{s}\n" for n in ("lm_head", "sampler") for s in (1, 256))
    )
    rows = [(c, b, n, k) for c in (0, 16, 2048) for b in ((0, 1024) if c else (0,)) for n in (0, 1, 64)
            for k in ((16, 4096) if n else (0,)) if c or n]  # fmt: skip
    (tmp_path / "p_attention.csv").write_text(
        "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n"
        + "".join(f"{c},{b},{n},{k},{c + b + n * k}\n" for c, b, n, k in rows)
    )
    return tmp_path / "p"


def test_a_profile_counts_each_layer_as_often_as_a_step_passes_it(profile):
    table = LayerProfile.read(profile, MODEL)
    dense = 2 * 100 + MODEL.layers * (2 + 6) * 100
    assert table.dense[100] == pytest.approx(dense * 1e-6)
    assert table.per_sequence[10] == pytest.approx(20e-6)
    assert table.attention_us(StepWork(32, decodes=32, kv_tokens=32_000)) == pytest.approx(32_000)


def test_a_mixed_step_is_looked_up_not_summed(profile):
    table = LayerProfile.read(profile, MODEL)
    work = StepWork(1001, 1000, 1, 1000 * 1001 // 2, 1, 500)
    assert table.attention_us(work) == pytest.approx(1500)


@pytest.mark.parametrize(
    ("table", "text"),
    [
        pytest.param("dense", "layer,tokens,time_us\nact_fn,1,nan\n", id="not-a-number"),
        pytest.param("dense", "layer,tokens,time_us\nact_fn,1,1\n", id="layers-missing"),
        pytest.param("dense", "", id="empty"),
        pytest.param("attention", "prefill_chunk\n1\n", id="columns-missing"),
        pytest.param("per_sequence", "layer,sequences,time_us\nlm_head,1,-3\n", id="negative"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(profile, table, text):
    profile.with_name(f"p_{table}.csv").write_text(text)
    with pytest.raises(BadInput):
        LayerProfile.read(profile, MODEL)
