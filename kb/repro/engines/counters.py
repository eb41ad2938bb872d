"""What a serving engine counts itself: the Prometheus text of ``/metrics`` of vLLM, SGLang and llama.cpp.

Counters are read before and after a run, so only their difference counts. The text comes from outside: it is bounded,
read line by line, and a line that is none is reported, not guessed at.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kb.errors import BadInput, CannotRun
from kb.http import NoAnswer
from kb.http.stream import Endpoint

WITHIN_S = 10.0
MAX_LINES = 200_000
SAMPLE = re.compile(
    r"([a-zA-Z_:][a-zA-Z0-9_:]{0,199})(?:\{(.*)\})?[ \t]+([^ \t]{1,40})(?:[ \t]+-?\d{1,20})?[ \t]*"
)
"""Name, labels, value, time stamp."""
LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"\s*(?:,|$)')
ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
NAMES: dict[str, dict[str, str]] = {
    "vllm": {
        "prompt_tokens": "vllm:prompt_tokens_total",
        "output_tokens": "vllm:generation_tokens_total",
        "looked_up_tokens": "vllm:prefix_cache_queries_total",
        "hit_tokens": "vllm:prefix_cache_hits_total",
        "preemptions": "vllm:num_preemptions_total",
        "drafted_tokens": "vllm:spec_decode_num_draft_tokens_total",
        "accepted_tokens": "vllm:spec_decode_num_accepted_tokens_total",
        "drafts": "vllm:spec_decode_num_drafts_total",
        "steps": "vllm:iteration_tokens_total_count",
        "step_tokens": "vllm:iteration_tokens_total_sum",
    },
    "sglang": {
        "prompt_tokens": "sglang:prompt_tokens_total",
        "output_tokens": "sglang:generation_tokens_total",
        "looked_up_tokens": "sglang:prompt_tokens_total",
        "hit_tokens": "sglang:cached_tokens_total",
        "preemptions": "sglang:num_retracted_requests_total",
    },
    "llama.cpp": {
        "computed_tokens": "llamacpp:prompt_tokens_total",
        "hit_tokens": "llamacpp:prompt_tokens_cached_total",
        "output_tokens": "llamacpp:tokens_predicted_total",
        "steps": "llamacpp:n_decode_total",
    },
}
"""Engine → our name → its name. llama.cpp counts computed and found prompt tokens apart."""
PREFIX = {"vllm:": "vllm", "sglang:": "sglang", "llamacpp:": "llama.cpp"}


@dataclass(frozen=True)
class Counters:
    """One reading."""

    engine: str
    """``vllm``, ``sglang`` or ``llama.cpp``."""
    values: Mapping[str, float]
    """Our name → value, summed over label sets; only what the engine has."""
    settings: Mapping[str, str]
    """Labels of the engine's own description of its cache, such as ``block_size``; empty where it gives none."""

    def since(self, before: Counters) -> dict[str, float]:
        """What was counted between two readings.

        Raises:
            CannotRun: A counter ran backwards: the server was started anew in between, or lies.
        """
        grown = {name: value - before.values.get(name, 0.0) for name, value in self.values.items()}
        fallen = [name for name, value in grown.items() if value < 0]
        if fallen or before.engine != self.engine:
            raise CannotRun(
                "counters not used",
                cause=f"{(fallen or ['the engine'])[0]} is not what it was before: the server was started anew",
                remedy="run again while nothing restarts it",
            )
        return grown


def read_counters(endpoint: Endpoint) -> Counters:
    """Ask a server for its counters.

    Raises:
        CannotRun: It does not answer, or with something that is no such text, or is no engine known here.
    """
    try:
        text = endpoint.get("/metrics", within_s=WITHIN_S)
        return parse_counters(text.decode("utf-8", "replace").splitlines())
    except (NoAnswer, BadInput) as problem:
        raise CannotRun(
            f"{endpoint.url}/metrics: not read",
            cause=f"{problem.what}: {problem.cause}",
            remedy="give the address of a server of vLLM, SGLang or llama.cpp with its metrics on",
        ) from problem


def parse_counters(lines: Iterable[str]) -> Counters:
    """Read the text format; see `Counters`.

    Raises:
        BadInput: A line is none of the format, a value is no finite number, or no known engine wrote it.
    """
    sums: dict[str, float] = {}
    settings: dict[str, str] = {}
    engine = ""
    for count, line in enumerate(lines):
        if count >= MAX_LINES:
            raise _bad(f"more than {MAX_LINES:,} lines")
        if not line.strip() or line.startswith("#"):
            continue
        found = SAMPLE.fullmatch(line)
        if found is None:
            raise _bad(f"a line that is no sample: {line[:80]!r}")
        name, labels, value = found[1], found[2] or "", found[3]
        own = next((known for prefix, known in PREFIX.items() if name.startswith(prefix)), "")
        if not own:
            continue
        engine = engine or own
        if name.endswith("cache_config_info"):
            settings = read_labels(labels)
        sums[name] = sums.get(name, 0.0) + _number(value, line)
    if not engine:
        raise _bad("no sample of vLLM, SGLang or llama.cpp")
    values = {ours: sums[theirs] for ours, theirs in NAMES[engine].items() if theirs in sums}
    negative = [name for name, value in values.items() if not math.isfinite(value) or value < 0]
    if negative:
        raise _bad(f"{negative[0]} is {values[negative[0]]}")
    return Counters(engine, values, settings)


def read_labels(text: str) -> dict[str, str]:
    """Labels between the braces; what follows a damaged one is left out."""
    found = {}
    at = 0
    while (label := LABEL.match(text, at)) is not None:
        found[label[1]] = re.sub(r"\\.", lambda escape: ESCAPES.get(escape[0], escape[0]), label[2])
        at = label.end()
    return found


def _number(text: str, line: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _bad(f"a value that is no number: {line[:80]!r}") from None


def _bad(cause: str) -> BadInput:
    return BadInput("metrics not read", cause=cause, remedy="see what the server answers at /metrics")
