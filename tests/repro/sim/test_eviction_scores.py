"""Scores of eviction policies: each is its published definition, written out token by token."""

import math

import numpy as np
import pytest

pytest.importorskip("torch", reason="scores of real attention need PyTorch")

from kb.repro.sim import eviction_scores as policies
from kb.repro.sim.eviction_scores import Calibration, Scored

HEADS, KV_HEADS, TOKENS, DIM = 4, 2, 48, 8
GROUP = HEADS // KV_HEADS


@pytest.fixture
def qk():
    rng = np.random.default_rng(3)
    return tuple(rng.standard_normal((heads, TOKENS, DIM), np.float32) for heads in (HEADS, KV_HEADS))


def softmax(values):
    top = max(values)
    parts = [math.exp(value - top) for value in values]
    return [part / sum(parts) for part in parts]


def logit(q, k, head, at, key):
    return float(q[head, at] @ k[head // GROUP, key]) / math.sqrt(DIM)


def test_attention_is_the_causal_softmax_of_every_query(qk):
    q, k = qk
    weights = policies.attention(q, k)
    for head in range(HEADS):
        for at in (0, 7, TOKENS - 1):
            wanted = softmax([logit(q, k, head, at, key) for key in range(at + 1)])
            assert weights[head, at, : at + 1] == pytest.approx(wanted, abs=1e-5)
            assert not weights[head, at, at + 1 :].any()


def test_h2o_adds_up_what_every_query_gave_and_keeps_half_of_the_budget_recent(qk):
    q, k = qk
    got = policies.accumulated(policies.attention(q, k), KV_HEADS, kept=9)
    for kv in range(KV_HEADS):
        total = np.zeros(TOKENS)
        for head in range(kv * GROUP, (kv + 1) * GROUP):
            for at in range(TOKENS):
                total[: at + 1] += softmax([logit(q, k, head, at, key) for key in range(at + 1)])
        assert got.scores[kv] == pytest.approx(total, abs=1e-4)
    assert got.recent == 5


def test_snapkv_counts_the_last_window_and_averages_over_neighbours(qk):
    q, k = qk
    got = policies.last_window(policies.attention(q, k), KV_HEADS)
    half = policies.SNAP_POOL // 2
    for kv in range(KV_HEADS):
        vote = np.zeros(TOKENS + 2 * half)
        for head in range(kv * GROUP, (kv + 1) * GROUP):
            for at in range(TOKENS - policies.SNAP_WINDOW, TOKENS):
                vote[half : half + at + 1] += softmax([logit(q, k, head, at, key) for key in range(at + 1)])
        pooled = [sum(vote[at : at + policies.SNAP_POOL]) / policies.SNAP_POOL for at in range(TOKENS)]
        assert got.scores[kv] == pytest.approx(pooled, abs=1e-4)
    assert got.recent == policies.SNAP_WINDOW


def test_r_kv_takes_likeness_off_attention_and_spares_the_latest_like_key(qk):
    q, k = qk
    k[1, 30] = k[1, 10] * 2  # alike whatever their size
    got = policies.redundancy(q, k)
    past = TOKENS - policies.RKV_WINDOW
    half = policies.RKV_POOL // 2
    for kv in range(KV_HEADS):
        seen = np.zeros(past)
        for at in range(past, TOKENS):
            heads = range(kv * GROUP, (kv + 1) * GROUP)
            largest = [max(logit(q, k, head, at, key) for head in heads) for key in range(past)]
            seen += np.array(softmax(largest)) / policies.RKV_WINDOW
        pooled = [max(seen[max(0, at - half) : at + half + 1]) for at in range(past)]
        unit = [key / np.linalg.norm(key) for key in k[kv]]
        likeness = np.zeros(TOKENS)
        for one in range(TOKENS):
            row = [0.0 if one == other else float(unit[one] @ unit[other]) for other in range(TOKENS)]
            row[max([other for other in range(TOKENS) if row[other] > policies.ALIKE], default=0)] = 0.0
            likeness += np.array(row) / TOKENS
        share = softmax(likeness)
        wanted = [
            policies.RKV_WEIGHT * pooled[at] - (1 - policies.RKV_WEIGHT) * share[at] for at in range(past)
        ]
        assert got.scores[kv, :past] == pytest.approx(wanted, abs=1e-5)


def test_triattention_sums_its_series_over_bands_and_future_distances(qk):
    q, k = qk
    omega = 100.0 ** (-np.arange(DIM // 2) / (DIM // 2))
    calibration = Calibration.of(q)
    got = policies.trigonometric(k, calibration, omega)
    raw = np.zeros((HEADS, TOKENS))
    for head in range(HEADS):
        for at in range(TOKENS):
            for band in range(DIM // 2):
                pairs = [complex(*q[head, t, 2 * band : 2 * band + 2]) for t in range(TOKENS)]
                mean, size = sum(pairs) / TOKENS, sum(abs(pair) for pair in pairs) / TOKENS
                key = complex(*k[head // GROUP, at, 2 * band : 2 * band + 2])
                phase = np.angle(mean) - np.angle(key)
                for offset in policies.OFFSETS:
                    distance = TOKENS - 1 - at + offset
                    wave = abs(mean) * abs(key) * math.cos(omega[band] * distance + phase)
                    raw[head, at] += wave / len(policies.OFFSETS)
                raw[head, at] += (size - abs(mean)) * abs(key)
    scaled = (raw - raw.mean(axis=1, keepdims=True)) / raw.std(axis=1, keepdims=True)
    assert got.scores == pytest.approx(scaled.reshape(KV_HEADS, GROUP, TOKENS).max(axis=1), abs=1e-3)


def test_queries_that_all_point_one_way_are_fully_concentrated():
    same = np.broadcast_to(np.float32([1, 2, 3, 4, 0, 1, 1, 0]), (1, 20, DIM))
    assert Calibration.of(np.ascontiguousarray(same)).concentration == pytest.approx(1.0)


@pytest.mark.parametrize("recent", [0, 3, 12, 40])
def test_the_choice_keeps_exactly_the_budget_the_recent_and_the_best(recent):
    rng = np.random.default_rng(recent)
    scores = rng.random((3, TOKENS), np.float32)
    kept = policies.keep(Scored(scores, recent), 12)
    assert kept.sum(axis=1).tolist() == [12] * 3
    assert kept[:, TOKENS - min(recent, 12) :].all()
    older = TOKENS - min(recent, 12)
    for row, values in zip(kept[:, :older], scores[:, :older], strict=True):
        assert min(values[row], default=2) >= max(values[~row], default=-1)


def test_one_set_lets_every_head_vote_with_the_same_weight():
    loud, quiet = np.float32([0, 100, 100, 0]), np.float32([1, 0, 0, 0])
    together = policies.one_set(Scored(np.stack([loud, quiet]), 0))
    assert together.scores.shape == (1, 4)
    assert policies.keep(together, 1).tolist() == [[True, False, False, False]]
