"""Only what is right is timed, with fresh inputs, cold caches and a clock that stands to reason."""

import time

import numpy as np
import pytest

from kb.errors import CannotRun, WrongResult
from kb.repro.harness.bench import Bench, Declared, identify
from kb.repro.harness.timing import Budget, Candidate, WallClock, alternate, drift, roofline_floor

SHORT = Budget(warm_up=1, repeats=9, limit_s=5.0, least=9)


def prepare(rng):
    return rng.normal(size=2_000), np.empty(2_000)


def double(inputs):
    values, out = inputs
    np.multiply(values, 2.0, out=out)
    return out


def verify(inputs, output):
    if not np.array_equal(output, inputs[0] * 2):
        raise WrongResult("double is wrong", cause="it is not twice the input", remedy="mend it")


def candidate(run=double, *, prepare=prepare, floor_s=0.0):
    return Candidate(prepare, run, verify, floor_s, poison=lambda inputs: [inputs[1]])


def rng(number):
    return np.random.default_rng([1, number % 2**32])


def timed(stopwatch=None, **candidates):
    return alternate(candidates, stopwatch or WallClock(flush_bytes=1 << 16), rng, SHORT)


def test_candidates_are_timed_in_turn_on_the_same_new_inputs():
    seen = []

    def watching(name):
        def run(inputs):
            seen.append((name, float(inputs[0][0])))
            return double(inputs)

        return run

    found = timed(a=candidate(watching("a")), b=candidate(watching("b")))
    assert {name: len(values) for name, values in found.samples.items()} == {"a": 9, "b": 9}
    assert [name for name, _ in seen] == ["a", "b"] * 10
    firsts = [value for name, value in seen if name == "a"]
    assert firsts == [value for name, value in seen if name == "b"]
    assert len(set(firsts)) == 10


def test_a_cached_output_is_found():
    """Right for the first inputs, the same for all others."""
    cache = {}

    def run(inputs):
        cache.setdefault("out", inputs[0] * 2)
        inputs[1][:] = cache["out"]
        return inputs[1]

    with pytest.raises(WrongResult, match="double is wrong"):
        timed(a=candidate(run))


def test_an_output_that_turns_wrong_after_the_first_repeats_is_found():
    calls = []

    def run(inputs):
        calls.append(1)
        double(inputs)
        if len(calls) > 5:
            inputs[1][7] += 1e-3
        return inputs[1]

    with pytest.raises(WrongResult, match="double is wrong"):
        timed(a=candidate(run))


def test_a_tail_that_is_never_written_is_found():
    def run(inputs):
        np.multiply(inputs[0][:-1], 2.0, out=inputs[1][:-1])
        return inputs[1]

    with pytest.raises(WrongResult, match="holds NaN"):
        timed(a=candidate(run))


def test_zero_filled_inputs_are_refused():
    zeros = candidate(prepare=lambda _: (np.zeros(100), np.empty(100)))
    with pytest.raises(WrongResult, match="inputs are constant"):
        timed(a=zeros)


def test_an_output_buffer_may_start_as_zeros():
    """Fresh memory often is; it is poisoned before each repeat."""
    fresh = candidate(prepare=lambda rng: (rng.normal(size=100), np.zeros(100)))
    assert len(timed(a=fresh).samples["a"]) == 9


def test_a_time_under_the_roofline_is_an_error():
    with pytest.raises(WrongResult, match="no possible time"):
        timed(a=candidate(floor_s=10.0))


def test_work_that_was_skipped_lies_under_the_floor():
    """A kernel that returns at once is faster than its bytes allow."""
    floor = roofline_floor(2_000 * 16, 2_000, peaks=(1e6, 1e9))
    assert floor == pytest.approx(0.032)
    with pytest.raises(WrongResult) as caught:
        timed(a=candidate(floor_s=floor))
    assert "bytes and FLOPs need at least 3.2" in caught.value.cause


def test_a_clock_that_goes_backwards_is_an_error():
    ticks = iter(range(1_000, 0, -1))
    with pytest.raises(WrongResult) as caught:
        timed(WallClock(tick=lambda: float(next(ticks)), flush_bytes=1 << 16), a=candidate())
    assert "went backwards" in caught.value.cause


def test_a_wall_clock_that_is_moved_during_the_run_drops_the_measurement(monkeypatch):
    real, jump = time.time, [0.0]

    def run(inputs):
        jump[0] += 60.0
        return double(inputs)

    monkeypatch.setattr(time, "time", lambda: real() + jump[0])
    with pytest.raises(CannotRun, match="dropped"):
        timed(a=candidate(run))


def test_drift_is_the_change_from_the_first_to_the_last_third():
    assert drift({"a": [1.0] * 9, "b": [1.0] * 3 + [1.2] * 3 + [1.5] * 3}) == 1.5
    assert drift({"a": [2.0] * 3 + [1.0] * 6}) == 2.0


def test_poison_reaches_torch_tensors_too():
    torch = pytest.importorskip("torch")

    def prepare(rng):
        return torch.from_numpy(rng.normal(size=100)), torch.empty(100, dtype=torch.float64)

    def tail(inputs):
        inputs[1][:-1] = inputs[0][:-1] * 2
        return inputs[1]

    with pytest.raises(WrongResult, match="holds NaN"):
        timed(a=Candidate(prepare, tail, lambda *_: None, 0.0, poison=lambda inputs: [inputs[1]]))


def bench(at="2026-01-01T00:00:00Z", **values):
    from kb.model import Level

    return Bench(Declared("toy", 0, Level.PROXY, "rule", "code", "inputs", "env", at), **values)


@pytest.fixture
def short_flush(monkeypatch):
    from kb.repro.harness import timing

    monkeypatch.setattr(timing.WallClock.__init__, "__defaults__", (time.perf_counter, 1 << 16))


def test_every_sample_is_kept_beside_its_floor_and_the_pairs(short_flush):
    from kb.model import Claim

    case = Claim.model_validate({"id": "a/b", "item": "i", "statement": {}, "provenance": "primary"})
    found = {
        (m.metric, m.case["timed"]): m
        for m in bench(quick=True).alternate(case, {"slow": candidate(), "fast": candidate()})
    }
    assert set(found) == {("duration", "slow"), ("duration", "fast"), ("speed_up", "fast")}
    slow, fast, pairs = found.values()
    assert pairs.samples == tuple(a / b for a, b in zip(slow.samples, fast.samples, strict=True))
    assert slow.unit == "s"
    assert slow.run_facts["clock"] == "wall"
    assert slow.run_facts["floor_s"] == 0.0
    assert {"drift", "load"} <= slow.run_facts.keys()
    assert all(identify(m) == m.id for m in found.values())


def test_each_session_of_a_clock_is_another_record_and_a_count_is_the_same_one(short_flush):
    from kb.model import Claim

    case = Claim.model_validate({"id": "a/b", "item": "i", "statement": {}, "provenance": "primary"})
    first, second = bench(), bench("2026-01-02T00:00:00Z")
    assert first.record("share", case, [0.5]).id == second.record("share", case, [0.5]).id
    assert first.record("share", case, [0.5]).id != first.record("share", case, [0.6]).id
    times = [next(iter(b.alternate(case, {"a": candidate()}))).id for b in (first, second)]
    assert times[0] != times[1]


def test_random_inputs_of_a_case_do_not_depend_on_the_order():
    from kb.model import Text

    one = bench()
    a, b = Text(zh="a"), Text(zh="b")
    assert one.rng(a).random() == one.rng(a).random() != one.rng(b).random()
    assert one.rng(a, 1).random() != one.rng(a).random()
