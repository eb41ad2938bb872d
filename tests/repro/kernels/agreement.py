"""What the kernel tests share: calls in hostile shapes, a watch on memory, and the one question all of them ask.

Every call is built so that a mistake shows: pools are poison but for the tokens that live, page 0 is never used,
page tables hold an impossible page past the last live slot. Under the interpreter a watch stops a kernel that
touches memory outside its tensors or reads poison. `disagreements` is what a kernel must keep empty.
"""

import contextlib
import importlib
import os
from pathlib import Path
from unittest import mock

import numpy as np
import torch

import kb.repro.kernels as package
from kb.repro.kernels import TOLERANCE, relative_error

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NAMES = sorted(path.stem for path in Path(package.__file__).parent.glob("[a-z]*.py"))
INTEGER_POISON = -123_456_789
true_empty = torch.empty


def poisoned_empty(*size, **kwargs):
    """`torch.empty`, filled with what must never be read."""
    out = true_empty(*size, **kwargs)
    return out.fill_(float("nan") if out.is_floating_point() else INTEGER_POISON)


class BadAccess(AssertionError):
    """A kernel touched memory it was not given, or read what nobody wrote."""


class Watch:
    """Stands in front of the interpreter's memory and checks every address and every value read."""

    def __init__(self, real):
        self.real = real
        self.ranges = []

    def __getattr__(self, name):
        return getattr(self.real, name)

    def check(self, pointers, mask, act):
        at = np.broadcast_to(pointers, np.broadcast_shapes(pointers.shape, mask.shape))[mask.astype(bool)]
        inside = np.zeros(at.shape, dtype=bool)
        for begin, end in self.ranges:
            inside |= (at >= begin) & (at < end)
        if not inside.all():
            raise BadAccess(f"{act} outside every tensor")

    def load(self, pointers, mask, other, dtype):
        self.check(pointers, mask, "load")
        out = self.real.load(pointers, mask, other, dtype)
        seen = out[mask.astype(bool)]
        poison = np.isnan(seen) if seen.dtype.kind == "f" else seen == INTEGER_POISON
        if poison.any():
            raise BadAccess("load of what nobody wrote")
        return out

    def store(self, pointers, value, mask):
        self.check(pointers, mask, "store")
        return self.real.store(pointers, value, mask)


@contextlib.contextmanager
def watched():
    """Check all memory that kernels touch; does nothing on a GPU."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        yield
        return
    from triton.runtime import interpreter

    watch = Watch(interpreter._interpreter)
    to_host = interpreter.GridExecutor._init_args_hst

    def note(self, args, kwargs):
        out = to_host(self, args, kwargs)
        tensors = [x for x in [*out[0], *out[1].values()] if isinstance(x, torch.Tensor)]
        watch.ranges = [(x.data_ptr(), x.data_ptr() + x.numel() * x.element_size()) for x in tensors]
        return out

    with (
        mock.patch.object(interpreter, "_interpreter", watch),
        mock.patch.object(interpreter.GridExecutor, "_init_args_hst", note),
    ):
        yield


class Pages:
    """A pool that is poison but for the tokens of the contexts dealt from it, in shuffled pages, page 0 never."""

    def __init__(self, lengths, tokens, heads, dim, dtype, seed, spread=1.0, pools=2):
        self.gen = torch.Generator().manual_seed(seed)
        slots = max(1, *(-(-n // tokens) for n in lengths)) + 1
        pages = len(lengths) * slots + 1
        self.table = torch.full((len(lengths), slots), INTEGER_POISON, dtype=torch.int32)
        self.lengths = torch.tensor(lengths, dtype=torch.int32)
        self.pools = [
            torch.full((pages, tokens, heads, dim), float("nan"), dtype=dtype) for _ in range(pools)
        ]
        deck = (torch.randperm(pages - 1, generator=self.gen) + 1).tolist()
        for row, n in enumerate(lengths):
            for slot in range(-(-n // tokens)):
                page = deck.pop()
                self.table[row, slot] = page
                live = min(tokens, n - slot * tokens)
                for pool in self.pools:
                    fill = torch.randn(live, heads, dim, generator=self.gen) * spread
                    pool[page, :live] = fill.to(dtype)

    def normal(self, *size, spread=1.0):
        return torch.randn(*size, generator=self.gen) * spread


def paged(lengths, dtype, *, tokens=16, dim=64, kv=2, group=2, spread=1.0, seed=0, **options):
    pages = Pages(lengths, tokens, kv, dim, dtype, seed)
    q = pages.normal(len(lengths), kv * group, dim, spread=spread).to(dtype)
    return (q, *pages.pools, pages.table, pages.lengths), options


def verify(lengths, dtype, *, queries=4, tokens=16, dim=64, kv=2, group=2, seed=0, **options):
    pages = Pages(lengths, tokens, kv, dim, dtype, seed)
    q = pages.normal(len(lengths), queries, kv * group, dim).to(dtype)
    return (q, *pages.pools, pages.table, pages.lengths), options


def ragged(kept, dtype, *, tokens=16, dim=64, shared=2, group=2, plan="fixed", seed=0, **options):
    rows = [n for sequence in kept for n in sequence]
    pages = Pages(rows, tokens, shared, dim, dtype, seed)
    batch, groups = len(kept), len(kept[0])
    q = pages.normal(batch, groups * shared * group, dim).to(dtype)
    lengths = pages.lengths.view(batch, groups).to(DEVICE)
    step = options.get("step", 64)

    def made(module):
        return module.fixed_plan(lengths, 3) if plan == "fixed" else module.balanced_plan(lengths, 4, step)

    return (q, *pages.pools, pages.table.view(batch, groups, -1), lengths), options | {"plan": made}


def compact(lengths, dtype, *, share=0.4, tokens=16, heads=2, dim=64, fresh=False, seed=0, **options):
    pages = Pages(lengths, tokens, heads, dim, dtype, seed)
    capacity = pages.table.shape[1] * tokens
    chance = torch.rand(len(lengths), capacity, generator=pages.gen)
    keep = (chance < share) & (torch.arange(capacity) < pages.lengths[:, None])
    if not fresh:
        return (*pages.pools, pages.table, keep), options
    size = pages.table.numel()
    target = (torch.randperm(size, generator=pages.gen) + len(pages.pools[0])).view(pages.table.shape).int()
    extra = torch.full((size, *pages.pools[0].shape[1:]), float("nan"), dtype=dtype)
    pools = [torch.cat([pool, extra]) for pool in pages.pools]
    needed = -(-keep.sum(1) // tokens)
    target[torch.arange(target.shape[1]) >= needed[:, None]] = INTEGER_POISON
    return (*pools, pages.table, keep, target), options


def window(lengths, dtype, *, queries=5, tokens=16, dim=64, kv=2, group=2, seed=0, **options):
    pages = Pages(lengths, tokens, kv, dim, dtype, seed, pools=1)
    q = pages.normal(len(lengths), queries, kv * group, dim).to(dtype)
    return (q, *pages.pools, pages.table, pages.lengths), options


def matrix(length, dtype, *, batch=2, kv=2, group=2, dim=64, seed=0, **options):
    gen = torch.Generator().manual_seed(seed)
    q, k = (torch.randn(batch, length, h, dim, generator=gen).to(dtype) for h in (kv * group, kv))
    return (q, k), options


def greedy(accept, dtype, *, queries=4, vocabulary=37, ties=False, seed=0, **options):
    gen = torch.Generator().manual_seed(seed)
    logits = torch.randn(len(accept), queries, vocabulary, generator=gen)
    if ties:
        logits[0] = 0.0
    logits = logits.to(dtype)
    draft = logits[:, : queries - 1].float().argmax(-1).int()
    for b, at in enumerate(accept):
        if at < queries - 1:
            draft[b, at] = (draft[b, at] + 1) % vocabulary
    return (draft, logits), options


def sample(batch, dtype, *, queries=4, vocabulary=37, nearness=0.5, same=False, seed=0, **options):
    gen = torch.Generator().manual_seed(seed)
    logits = torch.randn(batch, queries, vocabulary, generator=gen)
    noise = torch.randn(batch, queries - 1, vocabulary, generator=gen) * nearness
    target = torch.softmax(logits, -1)
    drafter = target[:, :-1].clone() if same else torch.softmax(logits[:, :-1] + noise, -1)
    draft = (
        torch.multinomial(drafter.reshape(-1, vocabulary), 1, generator=gen).view(batch, queries - 1).int()
    )
    uniform = torch.rand(batch, queries, generator=gen)
    return (draft, target.to(dtype), drafter.to(dtype).contiguous(), uniform), options


def parts(counts, dtype, *, seed=0, dim=64, **options):
    del dtype
    gen = torch.Generator().manual_seed(seed)
    first = torch.tensor([0, *counts], dtype=torch.int32).cumsum(0).int()
    size = int(first[-1])
    acc, peak = torch.randn(size, dim, generator=gen), torch.randn(size, generator=gen) * 20
    total = torch.rand(size, generator=gen) + 0.5
    empty = torch.arange(size) % 3 == 1  # every third part has seen no token: its values are poison
    acc[empty], peak[empty], total[empty] = float("nan"), -float("inf"), 0.0
    return (acc, peak, total, first), options


CASES = {
    "split_merge": {
        "one-two-none-many": lambda t: parts([1, 2, 0, 7], t),
        "wide-heads": lambda t: parts([4, 4, 4], t, dim=128),
    },
    "paged_decode": {
        "page-edges": lambda t: paged([1, 16, 17, 63], t),
        "empty-context": lambda t: paged([0, 5], t, splits=1),
        "more-splits-than-steps": lambda t: paged([7, 70], t, splits=5, step=16),
        "page-of-one-token": lambda t: paged([33, 3], t, tokens=1, step=16),
        "page-of-64": lambda t: paged([65, 127], t, tokens=64, step=32),
        "wide-heads-odd-group": lambda t: paged([50], t, dim=128, kv=1, group=3),
        "one-head": lambda t: paged([21], t, kv=1, group=1),
        "sharp-softmax": lambda t: paged([80], t, spread=12.0, step=16, splits=3),
    },
    "verify_attention": {
        "window-over-page-edges": lambda t: verify([4, 17, 66], t),
        "single-query": lambda t: verify([31], t, queries=1),
        "page-of-one-token": lambda t: verify([21], t, tokens=1, step=16),
        "page-of-64": lambda t: verify([70], t, tokens=64, queries=6, step=32),
        "more-splits-than-steps": lambda t: verify([9, 40], t, splits=4, step=16),
        "wide-heads-odd-group": lambda t: verify([37], t, dim=128, kv=1, group=3, queries=3),
    },
    "ragged_decode": {
        "fixed": lambda t: ragged([[1, 70], [33, 0]], t),
        "balanced": lambda t: ragged([[1, 70], [33, 0]], t, plan="balanced", step=16),
        "one-head-dominates": lambda t: ragged([[130, 1, 2]], t, plan="balanced", step=32, shared=1),
        "page-of-one-token": lambda t: ragged([[19, 4]], t, tokens=1, step=16),
        "page-of-64": lambda t: ragged([[65, 9]], t, tokens=64, plan="balanced", step=16),
        "wide-heads-odd-group": lambda t: ragged([[20], [45]], t, dim=128, group=3, shared=1),
    },
    "page_compact": {
        "fill": lambda t: compact([50, 17, 0, 80], t),
        "ordered": lambda t: compact([50, 17, 0, 80], t, fresh=True),
        "keep-all": lambda t: compact([33], t, share=1.1),
        "page-of-one-token": lambda t: compact([40, 9], t, tokens=1),
        "page-of-64-ordered": lambda t: compact([100], t, tokens=64, fresh=True, dim=128),
        "rows-wider-than-a-lane": lambda t: compact([40], t, heads=3, dim=64),
    },
    "window_scores": {
        "window-is-all": lambda t: window([5], t),
        "ragged": lambda t: window([6, 33, 64], t),
        "window-over-several-row-blocks": lambda t: window([40], t, queries=36, step=32),
        "page-of-one-token": lambda t: window([23], t, tokens=1, step=16),
        "page-of-64": lambda t: window([70], t, tokens=64),
        "wide-heads-odd-group": lambda t: window([29], t, dim=128, kv=1, group=3),
    },
    "full_scores": {
        "shorter-than-a-step": lambda t: matrix(13, t),
        "longer-than-a-step": lambda t: matrix(37, t, step=16),
        "wide-heads-odd-group": lambda t: matrix(20, t, dim=128, kv=1, group=3, batch=1),
    },
    "spec_verify": {
        "every-length": lambda t: greedy([0, 1, 2, 3], t),
        "one-drafted-token": lambda t: greedy([0, 1], t, queries=2),
        "vocabulary-in-several-steps": lambda t: greedy([1, 4], t, queries=5, vocabulary=71, step=16),
        "equal-logits": lambda t: greedy([2, 3], t, ties=True, step=16),
    },
    "spec_sample": {
        "near-drafter": lambda t: sample(5, t, step=64),
        "far-drafter": lambda t: sample(4, t, nearness=3.0, seed=1, step=64),
        "same-distribution": lambda t: sample(2, t, same=True, step=64),
        "vocabulary-in-several-steps": lambda t: sample(4, t, queries=3, vocabulary=41, step=16, seed=2),
        "one-drafted-token": lambda t: sample(4, t, queries=2, seed=3, step=64),
    },
}
"""Kernel → sentence → call builder: dtype → (arguments, keyword arguments)."""


def disagreements(module, dtype, *, first_only=False):
    """Cases in which a kernel and its reference do not agree within `TOLERANCE`, each with the reason.

    Args:
        module: A module of `kb.repro.kernels`, or a copy of one.
        dtype: Of the inputs.
        first_only: Stop at the first.
    """
    name = module.__name__.rpartition(".")[2]
    found = []
    for sentence, build in CASES[name].items():
        args, options = build(dtype)
        args = [x.to(DEVICE) for x in args]
        reason = disagreement(module, name, args, options, TOLERANCE[str(dtype).removeprefix("torch.")])
        if reason:
            found.append(f"{sentence}: {reason}")
            if first_only:
                break
    return found


def disagreement(module, name, args, options, tolerance):
    """Why this call disagrees with the reference; empty if it does not."""
    from triton.runtime.errors import InterpreterError

    expected = module.reference(*args)
    expected = expected if isinstance(expected, tuple) else (expected,)
    options = {key: value(module) if callable(value) else value for key, value in options.items()}
    try:
        with watched():
            got = getattr(module, name)(*[x.clone() for x in args], **options)
    except (InterpreterError, BadAccess) as error:
        return f"{error.__cause__ or error}"
    got = got if isinstance(got, tuple) else (got,)
    for out, ref in zip(got, expected, strict=True):
        # poison that stays where it was (pools) is agreement; anywhere else it is not
        if not torch.equal(out.isnan(), ref.isnan()):
            return "poison in the output"
        error = relative_error(out.nan_to_num(0, 9e9, -9e9), ref.nan_to_num(0, 9e9, -9e9))
        allowed = tolerance if out.is_floating_point() else 0.0
        if not error <= allowed:
            return f"relative error {error:.1e}"
    return ""


def load(name):
    """The module of one kernel."""
    return importlib.import_module(f"kb.repro.kernels.{name}")
