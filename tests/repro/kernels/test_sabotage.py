"""A kernel with one mask, scale or tail broken never passes the test that all kernels must pass.

Each line of `SABOTAGE` breaks one thing in the text of one kernel; the broken copy is then asked the question of
`test_agreement.py`. A line that goes unnoticed is a hole in the tests, not a detail.
"""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed; the kernels need it")
pytest.importorskip("triton", reason="Triton is not installed; the kernels need it")

import torch

import kb.repro.kernels as package
from tests.repro.kernels.agreement import NAMES, disagreements

ATTENTION = {
    "score-mask-gone": ('score = tl.where({live}, score, -float("inf"))', "score = score"),
    "key-load-unmasked": (
        "k = tl.load(k_ptr + at, mask=live[:, None], other=0.0)",
        "k = tl.load(k_ptr + at)",
    ),
    "value-load-unmasked": (
        "v = tl.load(v_ptr + at, mask=live[:, None], other=0.0)",
        "v = tl.load(v_ptr + at)",
    ),
    "query-load-unmasked": (", mask={rows}[:, None], other=0.0)", ")"),
    "table-load-unmasked": ("token // T, mask=live, other=0)", "token // T)"),
    "scale-forgotten": ("dim**-0.5 * LOG2_E", "LOG2_E"),
    "base-of-exponent-forgotten": ("dim**-0.5 * LOG2_E", "dim**-0.5"),
    "old-sum-not-shrunk": ("total = total * shrink +", "total = total +"),
    "old-values-not-shrunk": ("acc = acc * shrink[:, None] +", "acc = acc +"),
    "tail-one-token-short": ("live = token < end ", "live = token < end - 1 "),
    "tail-one-token-long": ("live = token < end ", "live = token <= end "),
    "page-slot-swapped": ("page * T + token % T", "page * T + token // T"),
    "wrong-kv-head": ("token % T) * {heads})[:, None]", "token % T) * {first})[:, None]"),
    "heads-of-other-group": ("g < G", "g < G - 1"),
    "partial-stored-past-the-rows": (
        "tl.store(peak_ptr + {part}, peak, mask={row})",
        "tl.store(peak_ptr + {part}, peak)",
    ),
    "sum-stored-past-the-rows": (
        "tl.store(total_ptr + {part}, total, mask={row})",
        "tl.store(total_ptr + {part}, total)",
    ),
    "values-stored-past-the-rows": ("d[None, :], acc, mask={rows}[:, None])", "d[None, :], acc)"),
}
FILL = {
    "paged_decode": {
        "live": "live[None, :]",
        "rows": "(g < G)",
        "row": "g < G",
        "heads": "K + kv",
        "first": "K + 0",
        "part": "part",
    },
    "verify_attention": {
        "live": "seen",
        "rows": "used",
        "row": "used",
        "heads": "K + kv",
        "first": "K + 0",
        "part": "part",
    },
    "ragged_decode": {
        "live": "live[None, :]",
        "rows": "(g < G)",
        "row": "g < G",
        "heads": "C + shared",
        "first": "C + 0",
        "part": "at_part",
    },
}
OWN = {
    "split_merge": {
        "empty-part-read": ("mask=d < tl.where(part > 0, D, 0)", "mask=d < D"),
        "old-sum-not-shrunk": ("total * shrink + part * weight", "total + part * weight"),
        "part-not-weighted": ("acc * shrink + values * weight", "acc * shrink + values"),
        "not-normalised": ("acc / tl.where(total > 0, total, 1.0)", "acc"),
        "empty-row-divided": ("acc / tl.where(total > 0, total, 1.0), 0.0)", "acc / total, acc / total)"),
        "minus-infinity-from-itself": ('tl.where(new_peak == -float("inf"), 0.0, new_peak)', "new_peak"),
        "last-part-forgotten": ("for x in range(begin, end)", "for x in range(begin, end - 1)"),
        "natural-exponent": ("weight = tl.exp2(part_peak - safe)", "weight = tl.exp(part_peak - safe)"),
    },
    "paged_decode": {
        "last-split-too-long": ("end = tl.minimum(begin + share, length)", "end = begin + share"),
        "splits-overlap": (
            "end = tl.minimum(begin + share, length)",
            "end = tl.minimum(begin + share + 1, length)",
        ),
    },
    "verify_attention": {
        "no-causal-mask": ("live[None, :] & (token[None, :] <= last[:, None])", "live[None, :]"),
        "does-not-see-itself": ("token[None, :] <= last[:, None]", "token[None, :] < last[:, None]"),
        "sees-one-ahead": ("last = length - R + row // G", "last = length - R + 1 + row // G"),
        "query-of-other-head": ("kv * G + row % G", "kv * G + row // R"),
        "minus-infinity-from-itself": ('tl.where(new_peak == -float("inf"), 0.0, new_peak)', "new_peak"),
    },
    "ragged_decode": {
        "plan-drops-the-last-token": (
            "(done + take) * step, lengths[row])",
            "(done + take) * step, lengths[row] - 1)",
        ),
        "fixed-split-one-token-short": ("min((s + 1) * share, n))", "min((s + 1) * share, max(n - 1, 0)))"),
        "parts-of-heads-mixed": (
            "(shared * G + g).to(tl.int64) * parts",
            "(shared + g).to(tl.int64) * parts",
        ),
        "group-of-other-sequence": ("row * slots + token // T", "(row // 2) * slots + token // T"),
    },
    "page_compact": {
        "all-tokens-move": ("moves = goal >= 0", "moves = goal >= -1"),
        "tail-unmasked": ("mask=token < length, other=-1", "mask=token <= length, other=-1"),
        "keys-only": ("tl.store(v_ptr + target[:, None] + number[None, :], v, mask=mask)", "pass"),
        "values-only": ("tl.store(k_ptr + target[:, None] + number[None, :], k, mask=mask)", "pass"),
        "lane-tail-unmasked": (
            "moves[:, None] & (number < WIDTH)[None, :]",
            "moves[:, None] & (number < 2 * WIDTH)",
        ),
        "lanes-past-the-first-forgotten": (
            "for begin in range(0, WIDTH, LANES)",
            "for begin in range(0, LANES, LANES)",
        ),
        "goal-one-off": ("goal % T) * WIDTH", "(goal + 1) % T) * WIDTH"),
        "source-table-for-goal": ("into_ptr + row * slots", "table_ptr + row * slots"),
        "old-page-unmasked": ("token // T, mask=moves, other=0)", "token // T)"),
        "new-page-unmasked": ("goal // T, mask=moves, other=0)", "goal // T)"),
    },
    "window_scores": {
        "scale-forgotten": ("dim**-0.5 * LOG2_E", "LOG2_E"),
        "no-causal-mask": ("live[None, :] & (token[None, :] <= last[:, None])", "live[None, :]"),
        "no-length-mask": ("live = token < length", "live = token < length + 1"),
        "key-load-unmasked": (
            "k = tl.load(k_ptr + at, mask=live[:, None], other=0.0)",
            "k = tl.load(k_ptr + at)",
        ),
        "table-load-unmasked": ("token // T, mask=live, other=0)", "token // T)"),
        "query-load-unmasked": ("d[None, :], mask=used[:, None], other=0.0)", "d[None, :])"),
        "window-one-off": ("last = length - W + row // G", "last = length - W - 1 + row // G"),
        "absent-rows-weigh": ('mask=used, other=float("inf")', "mask=used, other=0.0"),
        "row-sums-stored-past-the-rows": ("peak + tl.log2(total), mask=used)", "peak + tl.log2(total))"),
        "output-tail-unmasked": ("mass, mask=token < slots * T)", "mass)"),
        "only-first-row-block": ("for first in range(0, W * G, ROWS)", "for first in range(0, ROWS, ROWS)"),
        "old-sum-not-shrunk": ("total * tl.exp2(peak - new_peak) +", "total +"),
    },
    "full_scores": {
        "scale-forgotten": ("dim**-0.5 * LOG2_E", "LOG2_E"),
        "no-causal-mask": ("token[None, :] <= row[:, None]", "token[None, :] <= length"),
        "does-not-see-itself": ("token[None, :] <= row[:, None]", "token[None, :] < row[:, None]"),
        "query-load-unmasked": ("mask=used[:, None], other=0.0)", "mask=row[:, None] >= 0, other=0.0)"),
        "key-load-unmasked": (
            "mask=(token < length)[:, None], other=0.0)",
            "mask=(token >= 0)[:, None], other=0.0)",
        ),
        "row-tail-stored": (
            "mask=used[:, None] & (token < length)[None, :]",
            "mask=(token < length)[None, :]",
        ),
        "column-tail-stored": ("mask=used[:, None] & (token < length)[None, :]", "mask=used[:, None]"),
        "not-normalised": (
            "tl.exp2(score - peak[:, None]) / total[:, None]",
            "tl.exp2(score - peak[:, None])",
        ),
        "wrong-kv-head": ("(H // G) + h // G", "(H // G) + h % (H // G)"),
        "old-sum-not-shrunk": ("total * tl.exp2(peak - new_peak) +", "total +"),
    },
    "spec_verify": {
        "vocabulary-tail-unmasked": ("mask=token < vocabulary, other", "mask=token <= vocabulary, other"),
        "highest-of-equal-logits": (
            "tl.min(tl.where(score == top, where, vocabulary)",
            "tl.max(tl.where(score == top, where, -1)",
        ),
        "later-equal-logit-wins": ("better = logit > score", "better = logit >= score"),
        "accepts-past-a-difference": (
            "tl.where(draft == best, ROWS, r), axis=0)",
            "tl.where(draft == best, ROWS, r + 1), axis=0)",
        ),
        "draft-tail-unmasked": ("mask=r < R - 1, other=-2", "mask=r < R, other=-2"),
        "best-tail-unmasked": ("mask=r < R, other=-1)", "mask=r < R + 1, other=-1)"),
        "no-token-of-its-own": ("tl.where(r == agreed, best, -1)", "-1"),
        "output-tail-unmasked": ("token, mask=r < R)", "token)"),
        "only-first-step": ("for start in range(0, vocabulary, N)", "for start in range(0, N, N)"),
    },
    "spec_sample": {
        "always-accepts": ("u * q.to(tl.float32) < p", "p >= 0"),
        "ratio-upside-down": ("u * q.to(tl.float32) < p", "u * p < q.to(tl.float32)"),
        "draws-from-the-target": ("tl.maximum(p.to(tl.float32) - q.to(tl.float32), 0.0)", "p.to(tl.float32)"),
        "negative-weights": (
            "tl.maximum(p.to(tl.float32) - q.to(tl.float32), 0.0)",
            "p.to(tl.float32) - q.to(tl.float32)",
        ),
        "not-normalised": (
            "tl.load(uniform_ptr + b * R + R - 1) * total",
            "tl.load(uniform_ptr + b * R + R - 1)",
        ),
        "other-uniform-number": ("uniform_ptr + b * R + R - 1", "uniform_ptr + b * R"),
        "sum-of-earlier-steps-forgotten": ("before += tl.sum(weight, axis=0)", "before += 0.0"),
        "target-tail-unmasked": (
            "mask=token < vocabulary, other=0.0)",
            "mask=token < vocabulary + 9, other=0.0)",
        ),
        "drafter-tail-unmasked": ("end = tl.where(drafted >= 0, vocabulary, 0)", "end = vocabulary"),
        "draft-tail-unmasked": ("mask=drafted, other=0)", "mask=r < R, other=0)"),
        "target-row-tail-unmasked": ("+ token, mask=drafted, other=0.0)", "+ token, mask=r <= R, other=0.0)"),
        "drafter-row-tail-unmasked": ("mask=drafted, other=1.0)", "mask=r <= R, other=1.0)"),
        "output-tail-unmasked": ("out, mask=r < R)", "out)"),
        "never-the-last-token": ("tl.minimum(drawn, last)", "tl.minimum(drawn, 1)"),
    },
}


def sabotage():
    for name in NAMES:
        lines = dict(OWN.get(name, {}))
        if name in FILL:
            fill = FILL[name]
            for why, (old, new) in ATTENTION.items():
                if why == "heads-of-other-group" and name == "verify_attention":
                    continue  # its rows are queries and heads in one; "query-of-other-head" is its line
                pair = [old, new]
                for key, value in fill.items():
                    pair = [text.replace("{" + key + "}", value) for text in pair]
                lines[why] = tuple(pair)
        for why, (old, new) in lines.items():
            yield pytest.param(name, old, new, id=f"{name}-{why}")


@pytest.fixture
def broken(tmp_path):
    """A copy of a kernel's module with one thing broken."""
    made = []

    def build(name, old, new):
        text = (Path(package.__file__).parent / f"{name}.py").read_text()
        assert old in text, "the line to break is gone: bring the list up to date"
        path = tmp_path / f"{name}.py"
        path.write_text(text.replace(old, new))
        spec = importlib.util.spec_from_file_location(f"broken.{name}", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # the decorator looks its module up
        made.append(spec.name)
        spec.loader.exec_module(module)
        return module

    yield build
    for name in made:
        del sys.modules[name]


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize(("name", "old", "new"), list(sabotage()))
def test_a_broken_kernel_is_noticed(broken, name, old, new):
    assert disagreements(broken(name, old, new), torch.float32, first_only=True)


def test_an_unbroken_copy_is_not():
    """The question itself is not what fails: a faithful copy passes (checked on the smallest kernel)."""
    from tests.repro.kernels.agreement import load

    assert disagreements(load("split_merge"), torch.float32) == []
