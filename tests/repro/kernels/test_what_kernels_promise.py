"""What the kernels are for, said as laws: splitting, compacting and speculating change cost, never the answer."""

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed; the kernels need it")
pytest.importorskip("triton", reason="Triton is not installed; the kernels need it")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.repro.kernels import relative_error
from tests.repro.kernels.agreement import DEVICE, compact, load, matrix, paged, ragged, window

F32 = torch.float32


def on_device(args):
    return [x.to(DEVICE) for x in args]


@pytest.mark.parametrize("splits", [1, 2, 4, 7])
def test_number_of_splits_does_not_change_decode(splits):
    args, _ = paged([70, 9], F32)
    decode = load("paged_decode").paged_decode
    assert (
        relative_error(decode(*on_device(args), splits=splits, step=16), decode(*on_device(args), splits=1))
        < 1e-6
    )


def test_one_verified_query_is_one_decode_step():
    (q, *rest), _ = paged([33, 18], F32)
    decode = load("paged_decode").paged_decode(*on_device([q, *rest]))
    verify = load("verify_attention").verify_attention(*on_device([q[:, None].contiguous(), *rest]))
    assert relative_error(verify[:, 0], decode) < 1e-6


def test_heads_of_equal_length_decode_alike_whether_tables_are_shared_or_not():
    """A uniform cache written once per head group gives what paged decode gives."""
    (q, k, v, table, lengths), _ = paged([40, 21], F32, kv=2)
    groups = 2
    shape = (groups * len(k), k.shape[1], 1, k.shape[3])
    k_own, v_own = (pool.permute(2, 0, 1, 3).reshape(shape).contiguous() for pool in (k, v))
    own = torch.stack([table + g * len(k) for g in range(groups)], dim=1).contiguous()
    kept = lengths[:, None].expand(-1, groups).contiguous()
    out = load("ragged_decode").ragged_decode(*on_device([q, k_own, v_own, own, kept]))
    assert (
        relative_error(out, load("paged_decode").paged_decode(*on_device([q, k, v, table, lengths]))) < 1e-6
    )


@settings(max_examples=200, deadline=None)
@given(
    kept=st.lists(st.lists(st.integers(0, 400), min_size=3, max_size=3), min_size=1, max_size=4),
    workers=st.integers(1, 40),
    step=st.sampled_from([16, 64]),
)
def test_balanced_plan_covers_every_token_once_and_no_worker_has_two_steps_more_than_another(
    kept, workers, step
):
    plan = load("ragged_decode").balanced_plan(torch.tensor(kept), workers, step)
    covered = [[0] * n for row in kept for n in row]
    for row, begin, end in plan.part.tolist():
        for token in range(begin, end):
            covered[row][token] += 1
    assert all(count == 1 for row in covered for count in row)
    steps = [
        sum(-(-(int(e) - int(b)) // step) for _, b, e in plan.part[lo:hi].tolist())
        for lo, hi in zip(plan.worker[:-1].tolist(), plan.worker[1:].tolist(), strict=True)
    ]
    assert max(steps) - min(steps) <= 1
    assert plan.row[-1] == len(plan.part)


@settings(max_examples=100, deadline=None)
@given(
    kept=st.lists(st.integers(0, 300), min_size=1, max_size=9),
    splits=st.integers(1, 6),
    workers=st.integers(1, 20),
)
def test_a_plan_reads_each_kept_token_exactly_once(kept, splits, workers):
    ragged_module = load("ragged_decode")
    tensor = torch.tensor([kept])
    for plan in (ragged_module.fixed_plan(tensor, splits), ragged_module.balanced_plan(tensor, workers)):
        assert sum(plan.tokens_per_worker()) == sum(kept)


def test_balanced_plan_takes_the_skew_out_of_unequal_heads():
    """One head kept 16 times what the others did: fixed work is as slow as that head, balanced work is not."""
    module, kept = load("ragged_decode"), torch.tensor([[1600, 100, 100, 100]])
    fixed = module.fixed_plan(kept, 4).tokens_per_worker()
    balanced = module.balanced_plan(kept, 16).tokens_per_worker()
    assert max(fixed) == 400
    assert max(balanced) <= 128


@pytest.mark.parametrize("fresh", [False, True], ids=["fill", "ordered"])
def test_attention_after_compaction_is_attention_over_the_survivors(fresh):
    """Same output as before the move, over ceil(kept / page) pages instead of all."""
    args, _ = compact([70, 33], F32, fresh=fresh, heads=1)
    k, v, table, keep = args[:4]
    decode = load("paged_decode")
    q = torch.randn(2, 2, 64, generator=torch.Generator().manual_seed(3))
    expected = torch.zeros(2, 2, 64, dtype=torch.float64)
    for b in range(2):
        at = keep[b].nonzero()[:, 0]
        rows = table[b, at // 16].long(), at % 16
        scores = q[b].double() @ k[rows][:, 0].double().T / 8
        expected[b] = torch.softmax(scores, -1) @ v[rows][:, 0].double()
    k, v, kept = load("page_compact").page_compact(*on_device(args))
    new = args[4] if fresh else table
    out = decode.paged_decode(q.to(DEVICE), k, v, new.to(DEVICE), kept)
    assert relative_error(out.cpu(), expected) < 1e-6


def test_ordered_compaction_keeps_the_order_and_hole_filling_moves_the_fewest():
    module = load("page_compact")
    keep = torch.tensor([[1, 0, 1, 1, 0, 0, 1, 1]], dtype=torch.bool)
    assert module.goals(keep, ordered=True).tolist() == [[0, -1, 1, 2, -1, -1, 3, 4]]
    assert module.goals(keep, ordered=False).tolist() == [[-1, -1, -1, -1, -1, -1, 1, 4]]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=24, max_size=24), min_size=1, max_size=4))
def test_both_ways_of_compacting_fill_exactly_the_first_places(rows):
    module, keep = load("page_compact"), torch.tensor(rows)
    for ordered in (True, False):
        goal = module.goals(keep, ordered=ordered)
        for row, alive in enumerate(rows):
            ends = [g if g >= 0 else at for at, g in enumerate(goal[row].tolist()) if alive[at]]
            assert sorted(ends) == list(range(sum(alive)))


def test_a_window_of_all_queries_is_the_column_sum_of_the_full_matrix():
    """The cheap score and the expensive one are the same number when the window is the whole context."""
    (q, k), _ = matrix(20, F32, batch=1, dim=64)
    full = load("full_scores").full_scores(*on_device([q, k]))  # [1, H, N, N]
    pages = torch.zeros(2, 16, 2, 64)
    pages.view(-1, 2, 64)[:20] = k[0]
    table, lengths = torch.tensor([[0, 1]], dtype=torch.int32), torch.tensor([20], dtype=torch.int32)
    scores = load("window_scores").window_scores(*on_device([q, pages, table, lengths]))
    column = full[0].sum(1).view(2, 2, 20).sum(1)  # heads of one KV head together
    assert relative_error(scores[0, :, :20], column) < 1e-6
    assert scores[0, :, 20:].abs().max() == 0


def test_window_scores_add_up_to_one_per_query_and_head():
    args, _ = window([33, 64], F32, queries=5, group=2)
    sums = load("window_scores").window_scores(*on_device(args)).sum(-1)
    assert torch.allclose(sums.cpu(), torch.full((2, 2), 10.0), atol=1e-4)


def test_rejection_sampling_gives_the_targets_distribution():
    """Over an even grid of all random numbers the first token's frequency is the target's probability."""
    target = torch.tensor([0.5, 0.2, 0.2, 0.1])
    drafter = torch.tensor([0.1, 0.6, 0.1, 0.2])
    grid = (torch.arange(40) + 0.5) / 40
    draws = torch.cartesian_prod(torch.arange(4.0), grid, grid)  # drafted token, accept, draw
    batch = len(draws)
    args = (
        draws[:, :1].int(),
        target.expand(batch, 2, 4).contiguous(),
        drafter.expand(batch, 1, 4).contiguous(),
        draws[:, 1:].contiguous(),
    )
    _, tokens = load("spec_sample").reference(*args)
    weight = drafter[draws[:, 0].long()] / 1600
    share = torch.zeros(4).index_add(0, tokens[:, 0].long(), weight)
    assert torch.allclose(share, target, atol=0.02)


def test_a_flex_attention_oracle_agrees_with_paged_decode():
    """PyTorch's own FlexAttention over the gathered pages, an implementation nobody here wrote."""
    from torch.nn.attention.flex_attention import flex_attention

    (q, k, v, table, lengths), _ = paged([47], F32)
    n = int(lengths[0])
    pages = table[0, : -(-n // 16)].long()
    dense_k, dense_v = (pool[pages].reshape(-1, 2, 64)[:n].transpose(0, 1)[None] for pool in (k, v))
    with pytest.warns(UserWarning, match="torch.compile"):
        expected = flex_attention(q[:, :, None], dense_k, dense_v, enable_gqa=True)[:, :, 0]
    out = load("paged_decode").paged_decode(*on_device([q, k, v, table, lengths]))
    assert relative_error(out.cpu(), expected) < 1e-5


def test_ragged_cases_use_both_plans():
    """The helper really hands over the plan it names."""
    _, options = ragged([[5, 70]], F32, plan="balanced", step=16)
    made = options["plan"](load("ragged_decode"))
    assert len(made.worker) == 5
