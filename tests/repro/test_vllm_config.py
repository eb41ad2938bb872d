"""vLLM's configuration: defaults read from source text, hashes of pages, an image handed to four readers."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from kb.errors import WrongResult
from kb.model import Outcome
from kb.repro import vllm_config
from kb.repro._vllm_host import hand_over, hash_pages, hashed
from tests.repro.test_exact_tier import CLAIMS, bench

SCRIPT = Path(__file__).parents[2] / "scripts/read_vllm_defaults.py"
SOURCE = """
class Other:
    share: float = 0.5
class CacheConfig:
    share: float = Field(default=0.92, gt=0, le=1)
    size: ClassVar[int] = 16
    algo: Algo = "sha256"
    late: int = Field(default=None)
"""


@pytest.fixture(scope="module")
def reader():
    spec = importlib.util.spec_from_file_location("read_vllm_defaults", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("field", "value"), [("share", 0.92), ("size", 16), ("algo", "sha256")])
def test_a_default_is_read_plain_or_inside_field(reader, field, value):
    assert reader.default_of(SOURCE, "CacheConfig", field) == value


@pytest.mark.parametrize("field", ["late", "absent"])
def test_no_literal_default_is_an_error_and_no_guess(reader, field):
    with pytest.raises(LookupError, match=field):
        reader.default_of(SOURCE, "CacheConfig", field)


def test_the_shipped_defaults_name_their_wheel():
    found = vllm_config.read()
    assert found["wheel"].startswith(f"vllm-{found['version']}-")
    assert len(found["sha256"]) == 64


def test_a_page_hash_covers_all_pages_before_it():
    tokens = list(range(64))
    plain, changed = hashed(tokens), hashed([99, *tokens[1:]])
    assert len(plain) == 4
    assert not set(plain) & set(changed)
    assert hashed([*tokens[:48], 1, 2])[:3] == plain[:3]


def test_every_reader_gets_the_image_both_ways():
    ways = hand_over({"item_bytes": 40_000, "readers": 4})
    image = ways["socket"].prepare(np.random.default_rng(0))
    for one in ways.values():
        one.verify(image, one.run(image))
    with pytest.raises(WrongResult, match="another image"):
        ways["socket"].verify(image, [image + 1] * 4)


def clocked(claim, name, seconds, inputs):
    case = next(c for c in vllm_config.cases(CLAIMS) if c.claim == claim and c.metric == "duration")
    one = bench().record("duration", case, [seconds] * 5)
    return one.model_copy(update={"case": {**one.case, "timed": name, "inputs": inputs}})


@pytest.mark.parametrize(("nanoseconds", "outcome"), [
    (150, Outcome.HOLDS), (350, Outcome.PARTLY), (1000, Outcome.CONTRADICTED), (10, Outcome.CONTRADICTED),
])  # fmt: skip
def test_the_cost_of_hashing_is_judged_per_token(nanoseconds, outcome):
    taken = [clocked("vllm/hash-cost", "pickled-sha256", nanoseconds * 1e-6, {"tokens": 1000})]
    assert vllm_config.per_token(CLAIMS["vllm/hash-cost"], taken)[0] is outcome


def test_transport_alone_never_decides_but_wrong_arithmetic_does():
    claim = CLAIMS["vllm/shm-first-ttft"]
    mine = [one for case in vllm_config.cases(CLAIMS) if case.claim == claim.id
            for one in vllm_config.measure(case, bench())]  # fmt: skip
    ways = [
        clocked("vllm/shm-first-prefill", name, seconds, {"item_bytes": 9e6, "readers": 4})
        for name, seconds in (("socket", 0.05), ("shared-memory", 0.01))
    ]
    assert vllm_config.transport(claim, [*mine, *ways])[0] is None
    assert "40.0 ms" in vllm_config.transport(claim, [*mine, *ways])[1]
    wrong = claim.model_copy(update={"low": 0.3, "high": 0.3})
    assert vllm_config.transport(wrong, [*mine, *ways])[0] is False


def test_hashes_of_one_prompt_are_verified():
    one = hash_pages({"tokens": 320})["pickled-sha256"]
    tokens = one.prepare(np.random.default_rng(1))
    one.verify(tokens, one.run(tokens))
    with pytest.raises(WrongResult, match="hashes are wrong"):
        one.verify(tokens, hashed([tokens[0] ^ 1, *tokens[1:]]))
