"""The decode steps that Tangram's GPU run times: the plans give the same output, and one that loses tokens is refused."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from kb.errors import WrongResult
from kb.repro._tangram_gpu import candidates, lengths

INPUTS = {"batch": 1, "heads": 3, "tokens": 64, "mean": 0.5, "splits": 2, "workers": 2}


def test_equal_heads_hold_the_same_total():
    unequal, equal = (lengths(np.random.default_rng(1), INPUTS, even=flag) for flag in (False, True))
    assert len(set(equal.ravel().tolist())) == 1
    assert abs(int(unequal.sum()) - int(equal.sum())) <= unequal.size
    assert len(set(unequal.ravel().tolist())) > 1


@pytest.mark.parametrize("balance", [False, True])
def test_every_candidate_agrees_with_one_part_per_head(balance):
    made = None
    for one in candidates(INPUTS, balance=balance, device="cpu").values():
        made = made or one.prepare(np.random.default_rng(2))
        one.verify(made, one.run(made))


def test_a_plan_that_loses_tokens_is_refused():
    one = candidates(INPUTS, balance=True, device="cpu")["ahead"]
    made = one.prepare(np.random.default_rng(3))
    plan = made["unequal"][2]["ahead"]
    plan.part[0, 2] = plan.part[0, 1]
    with pytest.raises(WrongResult, match="in parts"):
        one.verify(made, one.run(made))
