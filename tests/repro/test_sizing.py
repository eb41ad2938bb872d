"""`kb size` counts what a model's shape implies, to the byte."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.cli.root import run
from kb.errors import NothingMatches, WrongUse
from kb.repro.sim.shapes import find_hardware, find_model, hardware, models
from kb.repro.sim.sizing import size

H100 = find_hardware("h100")


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("llama-3-8b", 8_030_261_248),
        ("llama-3-70b", 70_553_706_496),
        ("llama-2-7b", 6_738_415_616),
        ("qwen3-32b", 32_762_123_264),
        ("qwen2.5-7b", 7_615_616_512),
        ("mixtral-8x7b", 46_702_792_704),
        ("deepseek-v2-lite", 15_706_484_224),
        ("deepseek-v3", 671_026_419_200),
        ("gemma-3-12b", 11_766_034_176),
        ("smollm2-135m", 134_515_008),
    ],
)
def test_parameters_counted_from_the_shape_equal_the_publishers_total(name, parameters):
    assert find_model(name).parameters == parameters


@pytest.mark.parametrize(
    ("name", "per_token"),
    [
        pytest.param("llama-3-8b", 2 * 32 * 8 * 128 * 2, id="grouped-heads-128-KiB"),
        pytest.param("llama-3-70b", 327_680, id="grouped-heads-320-KiB"),
        pytest.param("llama-2-7b", 524_288, id="one-kv-head-per-query-head-512-KiB"),
        pytest.param("qwen3-32b", 262_144, id="head-dim-not-hidden-over-heads"),
        pytest.param("mixtral-8x7b", 131_072, id="experts-do-not-change-the-cache"),
        pytest.param("deepseek-v3", 61 * 576 * 2, id="latent-attention-keeps-512-plus-64"),
        pytest.param("gemma-3-12b", 393_216, id="sliding-window-before-it-is-full"),
    ],
)
def test_bytes_one_token_adds(name, per_token):
    assert find_model(name).kv_token_bytes() == per_token


def test_a_sliding_window_layer_stops_growing():
    """40 of Gemma's 48 layers keep 1,024 tokens; eight keep everything."""
    gemma, per_layer = find_model("gemma-3-12b"), 2 * 8 * 256 * 2
    assert gemma.kv_bytes(100_000) == (8 * 100_000 + 40 * 1024) * per_layer


def test_every_layer_windowed_means_the_cache_is_bounded():
    mistral = find_model("mistral-7b-v0.1")
    assert mistral.kv_bytes(1_000_000) == mistral.kv_bytes(4096) == 4096 * 131_072


def test_whole_pages_are_held():
    assert find_model("llama-3-8b").kv_bytes(17, page=16) == 32 * 131_072


@given(st.sampled_from(sorted(models())), st.integers(1, 10**6), st.sampled_from([1, 16, 64]))
def test_more_context_never_needs_less(name, context, page):
    model = models()[name]
    assert model.kv_bytes(context, page=page) <= model.kv_bytes(context + 1, page=page)


def test_the_stated_forty_requests_do_not_fit_beside_a_70b_in_fp8():
    """8 GB hold 6.0 contexts of 4,096 tokens at 16 bits."""
    assert 8e9 / find_model("llama-3.3-70b").kv_bytes(4096) == pytest.approx(5.96, abs=0.01)


def test_weights_in_fp8_keep_their_embeddings_at_16_bits():
    assert find_model("llama-3-70b").weight_bytes("fp8") == 72_655_052_800


@given(st.sampled_from(sorted(models())), st.integers(1, 200_000), st.integers(1, 64))
def test_it_fits_exactly_while_the_batch_is_not_above_the_largest(name, context, batch):
    result = size(models()[name], H100, context=context, batch=batch, weights="int4")
    assert result.fits == (batch <= result.max_batch)


@pytest.mark.parametrize("wrong", [{"context": 0}, {"batch": -1}, {"kv": "int3"}, {"utilization": 1.5}])
def test_wrong_numbers_are_refused(wrong):
    with pytest.raises(WrongUse):
        size(find_model("llama-3-8b"), H100, **{"context": 1, "batch": 1, **wrong})


def test_an_unknown_model_names_its_neighbours():
    with pytest.raises(NothingMatches) as error:
        find_model("llma-3-8b")
    assert "llama-3-8b" in error.value.cause


def test_every_record_names_its_source_and_no_alias_is_taken_twice():
    for table in (models(), hardware()):
        names = [name for unit in table.values() for name in (unit.name, *unit.aliases)]
        assert len(names) == len(set(names))
        assert all(unit.source for unit in table.values())


def test_the_command_prints_one_document(capsys):
    assert run(["size", "llama-3-8b", "--gpu", "h100", "--context", "8192", "--batch", "4", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["kv"] == 4 * 8192 * 131_072
    assert run(["size", "nothing", "--gpu", "h100", "--context", "1"]) == 2
