"""Figures of performance in a text: numbers with a unit, and whether baseline and conditions stand beside them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from kb.triage.reading import plain

_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_UNIT = (
    r"(?:x\b|×|倍|%|tok(?:en)?s?/s(?:ec)?|tokens per second|req(?:uest)?s?/s(?:ec)?|ms\b|µs\b|μs\b|seconds?\b|s\b(?![-/])|毫秒|秒"
    r"|[KMGT]i?B\b|GB/s|TB/s|个百分点|FLOPS|TFLOPS|bits?\b|bit\b|小时|hours?\b|months?\b|万|亿)"
)
FIGURE = re.compile(
    rf"(?<![\w.]){_NUMBER}\s?(?:{_UNIT})?(?:\s?(?:[-–—~至到]|to|and)\s?{_NUMBER})?\s?{_UNIT}", re.IGNORECASE
)
"""A number or range with a unit of performance, size or money."""
HARDWARE = re.compile(
    r"\b(?:[ABHLV]\d{2,3}s?|GB?200|RTX\s?\d{4}(?:\s?Ti)?|MI\d{3}[A-Z]?|TPU\s?v\d\w?|Jetson(?:\s\w+)?|Snapdragon(?:\s\d\w*)?|Xeon|EPYC"
    r"|M[1-5]\s(?:Pro|Max|Ultra)|Gaudi\s?\d?|Instinct|Ascend\s?\w+|[A-Z]{2}\d{3,4}[A-Z]?)\b(?:\s(?:SXM\d?|PCIe|Ti))?"
    r"(?:\s\d+\s?GB)?|(?<![\w])\d+\s?(?:x\s)?(?:张|卡|块)\s?[A-Z]\d+"
)
"""Names of accelerators and processors."""
VERSION = re.compile(
    r"\b[A-Z][A-Za-z.+]*(?:-[A-Za-z]+)?\s?v?\d+\.\d+(?:\.\d+)*\b(?!\s?(?:%|x\b|×|倍|s\b|ms|GB|[BM]\b|-?\d*B\b))"
)
"""A product with a version number."""
MODEL = re.compile(
    r"\b[A-Z][A-Za-z.]*(?:[\s-]?\d+(?:\.\d+)*)?(?:-[A-Za-z.]+)*-\d+(?:\.\d+)?B\b|\b\d+(?:\.\d+)?B\b"
)
"""A language model with its size."""
LOAD = re.compile(
    r"\b\d[\d,]*\s(?:concurrent|requests|prompts|conversations|sessions|runs|images|tokens|users|samples)\b"
    r"|\bconcurrency\s(?:of\s)?\d+|\bbatch(?:\ssize)?s?\s(?:of\s)?\d+|\b\d+K(?:/\d+K)?\b(?:\s(?:context|tokens))?|并发\s?\d+"
    r"|\d+\s?(?:个)?(?:请求|会话|次重复)|\b[Pp]\d{2}\b",
)
"""How much was asked at once, and of what length."""
COMPARED = re.compile(
    r"\b(?:than|against|versus|vs\.?|over|compared|relative to|baselines?|beats?|that of|instead of|from \S+ to|falls? by|lower"
    r"|higher|faster|slower|reduc\w+|improv\w+|drops?|cuts?|raises?|rises?|gains?|without|before)\b|相比|相对|对比|较|基线|从.{1,16}(?:到|降|升|增)"
    r"|降低|提升|加速|减少|优于",
    re.IGNORECASE,
)
"""Words that put a figure beside another."""
NAMED_BASELINE = re.compile(
    r"\b(?:than|against|versus|vs\.?|over|compared (?:with|to)|relative to|baselines?|beats?|that of|from \S+(?: \w+)? to)\b"
    r"|相比|相对|对比|较|基线|从.{1,16}(?:到|降至|升至|降到|升到)",
    re.IGNORECASE,
)
"""Words after which the baseline itself stands."""


DIGIT = re.compile(r"\d")


@dataclass(frozen=True)
class Figure:
    """One figure of a text."""

    said: str
    """As written, ``1.9x–3.0x``, in compatibility form."""
    sentence: str
    """As written."""
    has_baseline: bool
    """Whether what it is compared with is named in the sentence."""
    has_conditions: bool
    """Whether hardware, model or load is named in the sentence."""


@lru_cache(maxsize=4096)
def _in_sentence(sentence: str) -> tuple[Figure, ...]:
    if not DIGIT.search(sentence):
        return ()
    text = plain(sentence)
    said = [hit.group().strip() for hit in FIGURE.finditer(text)]
    if not said:
        return ()
    baseline = bool(NAMED_BASELINE.search(text))
    conditions = bool(HARDWARE.search(text) or MODEL.search(text) or LOAD.search(text))
    return tuple(Figure(one, sentence, baseline, conditions) for one in said)


def find_figures(sentences: tuple[str, ...]) -> list[Figure]:
    """Figures of performance in the order of the text."""
    return [figure for sentence in sentences for figure in _in_sentence(sentence)]


@lru_cache(maxsize=8)
def setup_of(text: str) -> dict[str, list[str]]:
    """What a text names of its set-up: ``hardware``, ``version``, ``model``, ``load``, each with the words."""
    named = {"hardware": HARDWARE, "version": VERSION, "model": MODEL, "load": LOAD}
    found = {
        name: list(dict.fromkeys(hit.group().strip() for hit in pattern.finditer(text)))
        for name, pattern in named.items()
    }
    return {name: words for name, words in found.items() if words}
