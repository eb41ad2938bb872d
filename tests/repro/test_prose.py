"""Figures in our own prose follow from the reproductions: a module that changes and prose that does not shows here."""

import math
from pathlib import Path

import pytest

from kb.repro import (
    cats,
    fastkvzip,
    kvquant,
    kvzip,
    lmcache,
    oscar,
    rkv,
    snapkv,
    spheron,
    tangram,
    vllm_config,
)
from kb.repro.sim.quantisers import codebook
from kb.repro.sim.shapes import find_hardware, find_model
from kb.store import Base

ROOT = Path(__file__).parents[2]
BASE = Base(ROOT / "shared/research-kb")
CONTRADICTIONS = {section.slug: section.intro for section in BASE.guides()["contradictions"].sections}
LLAMA_7B, QWEN_14B = find_model("llama-2-7b"), find_model("qwen2.5-14b")
ERROR_3 = codebook(3, 128)[1]
GATES = {name: fastkvzip.gate_share(**fastkvzip.inputs(name)) for name in fastkvzip.NAMES}


def bytes_ratio(weights, before, after):
    return (weights + before) / (weights + after)


SAID = [
    ("pages-freed", "0.9 的 16 次方 = 18.5 %", 100 * 0.9**16, "18.5"),
    ("pages-freed", "1.4e-6", 0.185**8, "1.4e-06"),
    ("definitions", "10.67", 32_768 / 3072, "10.67"),
    ("definitions", "1 − 819 / 8,192", rkv.saved(819, 8192), "0.9"),
    ("unequal-batches", "6.63", 2300.28 / 347.03, "6.63"),
    ("unequal-batches", "1.17", 80.95 / 69.41, "1.17"),
    ("bandwidth", "最多 1.96 倍", snapkv.step_speed_up(16_384, 2048, 2, 1), "1.96"),
    ("bandwidth", "3.3 倍", snapkv.step_speed_up(16_384, 2048, 2, 3), "3.3"),
    ("bandwidth", "17.2 GB KV", 2 * 16_384 * LLAMA_7B.kv_token_bytes() / 1e9, "17.2"),
    ("bandwidth", "最多 1.72 倍", oscar.step_bound(131_072, 1, 1), "1.72"),
    ("bandwidth", "5.3 倍", oscar.memory_ratio(131_072, 32, 128), "5.3"),
    ("bits", "= 2.25", (32 * 3 + 96 * 2) / 128, "2.25"),
    ("bits", "实为 0.0340", ERROR_3, "0.0340"),
    ("bits", "= 0.0534", math.pi / 2 * ERROR_3, "0.0534"),
    ("whose-prefixes", "= 15.6", 13.9 / 0.89, "15.6"),
    ("tangram", "0.67 %（Qwen2.5-7B）", 100 * min(GATES.values()), "0.67"),
    ("tangram", "1.47 %（Qwen3-4B）", 100 * max(GATES.values()), "1.47"),
    ("a-million", "524.3 GB", 1e6 * LLAMA_7B.kv_token_bytes() / 1e9, "524.3"),
    ("a-million", "76.0 GB", 1e6 * LLAMA_7B.kv_token_bytes() / 6.9 / 1e9, "76.0"),
    ("a-million", "13.5 GB", LLAMA_7B.weight_bytes("bf16") / 1e9, "13.5"),
    ("a-million", "85.9 GB", kvquant.MEMORY / 1e9, "85.9"),
    ("by-shape", "23.6 GB", kvzip.cache_bytes(120_000) / 1e9, "23.6"),
    ("by-shape", "196,608", QWEN_14B.kv_token_bytes(), "196608"),
    ("reload", "7.8–", lmcache.reload_gain(**lmcache.inputs("llama-3-8b", 1000)), "7.8"),
    ("reload", "–11.4", lmcache.reload_gain(**lmcache.inputs("llama-3-8b", 30_000)), "11.4"),
    ("roofline", "72.7 GB", find_model("llama-3.3-70b").weight_bytes("fp8") / 1e9, "72.7"),
    ("roofline", "≈ 46", find_hardware("h100").bandwidth / find_model("llama-3.3-70b").weight_bytes("fp8"), "46"),
    ("cats", "2.22", cats.byte_speed_up(**cats.inputs(3, 5, 3.05)), "2.22"),
    ("rtp-llm", "= 37.2 %", 100 * (1 - 52.3 / 83.3), "37.2"),
    ("rtp-llm", "= 35.4 %", 100 * (1 - 226 / 350), "35.4"),
    ("rtp-llm", "+215 %", 100 * (83.8 / 26.6 - 1), "215"),
    ("rtp-llm", "+0.8 %", 100 * (840 / 833 - 1), "0.8"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("slug", "said", "computed", "shown"), SAID, ids=[f"{row[0]}-{row[3]}" for row in SAID]
)
def test_a_figure_in_the_prose_is_what_the_module_computes(slug, said, computed, shown):
    assert said in CONTRADICTIONS[slug].zh
    digits = len(shown.partition("e")[0].partition(".")[2])
    written = f"{computed:.{digits}e}" if "e" in shown else f"{computed:.{digits}f}"
    assert written == shown


def test_hit_rates_cannot_reach_the_shared_share():
    for share in (0.2, 0.4):
        assert spheron.hit_ceiling(2048, 70, share) < share


def test_the_defaults_told_are_those_of_the_wheel():
    text, found = CONTRADICTIONS["defaults"].zh, vllm_config.read()
    assert f"vLLM {found['version']}" in text
    for field in ("enable_prefix_caching", "gpu_memory_utilization"):
        assert f"{field} = {found['defaults'][field]}" in text


def test_over_reservation_is_as_told():
    import numpy as np

    drawn = [tangram.over_reservation(np.random.default_rng(seed), 28, 2) for seed in range(10)]
    assert "1.5–1.6" in CONTRADICTIONS["tangram"].zh
    assert 1.45 <= np.median(drawn) <= 1.65


TOPICS = BASE.topics()
LIMITS = ("不能说明", "只说明", "无从检验", "合成的")


@pytest.mark.parametrize(
    "note", [note for topic in TOPICS.values() for note in topic.notes], ids=lambda n: n.title.en
)
def test_a_note_says_what_it_cannot_show_in_both_languages(note):
    assert all((note.title.zh, note.title.en, note.text.zh))
    assert any(words in note.text.zh for words in LIMITS)
    assert 0 < len(note.text.en) <= 320
    assert "\n" not in note.text.en


def test_every_relayed_difference_is_in_the_table_of_drifts():
    from kb.publish.guides import render_guide
    from kb.repro.harness.judge import unjudged

    claims = BASE.claims()
    differ = {
        name
        for name, claim in claims.items()
        if any(relay.match not in {"matches", "unchecked"} for relay in claim.relayed)
    }
    pairs = [(claim, unjudged(claim, "untested", "-", "-")) for claim in claims.values()]
    text = b"".join(render_guide(BASE.guides()["relay-drifts"], pairs, {}, "zh").values()).decode()
    assert len(differ) >= 49
    assert {name for name in differ if f"`{name}`" in text} == differ
    assert text.count("\n| [") == sum(
        relay.match not in {"matches", "unchecked"} for claim in claims.values() for relay in claim.relayed
    )


DOSSIERS = ROOT.parent / "shared/dossiers"


@pytest.mark.skipif(not DOSSIERS.is_dir(), reason="the dossiers are not beside this checkout")
def test_every_quotation_the_dossiers_call_wrong_is_recorded_as_a_difference():
    import yaml

    claims, missing = BASE.claims(), []
    for path in DOSSIERS.glob("*.yaml"):
        held = yaml.safe_load(path.read_text(encoding="utf-8"))
        for row in held["claims"] if isinstance(held, dict) else held:
            if row.get("seed_quote_matches") is False:
                relayed = claims[row["id"]].relayed
                missing += [row["id"]] * (not any(r.match not in {"matches", "unchecked"} for r in relayed))
    assert missing == []
