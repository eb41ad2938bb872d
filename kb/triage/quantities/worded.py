"""Quantities without digits: halves, a third, doubled; no loss, unchanged, almost nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_EN_PART = {
    "half": 2,
    "third": 3,
    "quarter": 4,
    "fourth": 4,
    "fifth": 5,
    "sixth": 6,
    "eighth": 8,
    "tenth": 10,
    "hundredth": 100,
}
_EN_COUNT = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "nine": 9}
_HAN = {"一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10}
_HARM = r"(?:loss|degradation|drop|decrease|overhead|difference|change|benefit|gain|effect|slowdown|penalty|impact|cost|regression|improvement)"
_CLEAR = r"(?:measurable|noticeable|significant|visible|detectable|appreciable|observable|obvious)"
_HAN_HARM = r"(?:损失|下降|变化|差异|影响|开销|退化|提升|收益|增加|改善)"


@dataclass(frozen=True)
class Worded:
    """A figure that is a word."""

    start: int
    end: int
    low: float
    unit: str
    is_zero: bool = False
    is_about: bool = False


def worded(text: str) -> Iterator[Worded]:
    """Worded quantities of a plain text, in order of kind."""
    for pattern, read in _PATTERNS:
        for m in pattern.finditer(text):
            if (found := read(text, m)) is not None:
                yield found


def _multiple(text: str, m: re.Match[str]) -> Worded | None:
    word = m.group(1).lower()
    if re.match(r"\s+(?:the|its|their|a|an)?\s?(?:\w+\s){1,4}from\b", text[m.end() :]):
        return None  # “doubling the page size from 16 to 32”: the figures follow
    if re.search(r"\b(?:when|if|as|once|after|until|while)\s(?!many|much)[^,.;]{1,30}$", text[: m.start()]):
        return None  # “only 5% when load doubled”: what is done, not what comes of it
    value = 3.0 if word.startswith("tripl") else 4.0 if word.startswith("quadrupl") else 2.0
    return Worded(m.start(1), m.end(1), value, "ratio")


_WHOLE = r"(?:budget|time|runtime|traffic|bandwidth|capacity|load|work|data|day|total|bill|corpus|workload)"
"""What a part is taken of, where “a tenth of the cost” may compare."""


def _halved(_: str, m: re.Match[str]) -> Worded:
    return Worded(m.start(1), m.end(1), 0.5, "fraction")


def _part(text: str, m: re.Match[str]) -> Worded | None:
    count = _EN_COUNT.get((m.group(1) or "a").lower().strip(), 1)
    value = count / _EN_PART[m.group(2).lower().rstrip("s")]
    after, before = text[m.end() :], text[: m.start()]
    compared = re.match(
        r"\s+(?:of|as)\s+(?:(?:the|an?|that|what|its|those)\b|much|[A-Z])|\s+(?:the|its)\s", after
    )
    shared = re.match(
        rf"\s+of\s+(?:the\s|all\s|its\s|our\s)?(?:[a-z]+s\b|(?:\w+\s)?{_WHOLE}\b(?!\sof))", after
    )
    is_ratio = (
        bool(compared) and not shared and not re.search(r"\bby\s+(?:about |around |up to |almost )?$", before)
    )
    if (
        not compared
        and not re.match(r"\s+of\s", after)
        and not re.search(r"\b(?:by|to|only|about|roughly|nearly)\s+(?:\w+ )?$", before)
    ):
        return None  # “the third”, “a quarter” as a name of something
    return Worded(m.start(), m.end(), value, "ratio" if is_ratio else "fraction")


def _none(text: str, m: re.Match[str]) -> Worded | None:
    if re.match(r"\s(?:to\s)?within\b", text[m.end() :]):
        return None  # “unchanged within 0.3 points”: the figure follows
    about = bool(
        re.search(
            rf"almost|nearly|practically|virtually|essentially|hardly|{_CLEAR}|measurably|noticeably|significantly|negligibl",
            m.group(),
        )
    )
    return Worded(m.start(), m.end(), 0.0, "fraction", is_zero=True, is_about=about)


def _none_zh(_: str, m: re.Match[str]) -> Worded | None:
    if re.match(r"(?:并|完全)?(?:没有|无)(?:任何)?(?:提升|收益|改善)", m.group()):
        return None  # “毫无提升” judges; it states no figure
    about = bool(re.search(r"几乎|基本|大致|近乎|接近|可测|明显|显著|可见|可察觉|可感知", m.group()))
    return Worded(m.start(), m.end(), 0.0, "fraction", is_zero=True, is_about=about)


def _part_zh(text: str, m: re.Match[str]) -> Worded:
    value = (
        _HAN[m.group(2)] / _HAN[m.group(1)]
        if m.group(1) in _HAN
        else _HAN[m.group(2)] / (100 if m.group(1) == "百" else 1000)
    )
    is_ratio = bool(re.search(r"(?:到|至|是|为|有|相当于)[^，。；]{0,12}的$", text[: m.start()]))
    return Worded(m.start(), m.end(), value, "ratio" if is_ratio else "fraction")


def _tenths_zh(_: str, m: re.Match[str]) -> Worded:
    half = 0.05 if m.group(2) else 0.0
    return Worded(m.start(), m.end(), _HAN[m.group(1)] / 10 + half, "fraction")


_FOLDS = {
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "hundred": 100,
}
_MAGNITUDES = {"an": 1, "a": 1, "one": 1, "two": 2, "three": 3, "一": 1, "两": 2, "三": 3}


def _fold(_: str, m: re.Match[str]) -> Worded:
    return Worded(m.start(), m.end(), float(_FOLDS[m.group(1).lower()]), "ratio")


def _magnitude(_: str, m: re.Match[str]) -> Worded:
    return Worded(m.start(), m.end(), 10.0 ** _MAGNITUDES[m.group(1).lower()], "ratio", is_about=True)


def _once_more(_: str, m: re.Match[str]) -> Worded:
    return Worded(m.end() - 2, m.end(), 2.0, "ratio")


_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[str, re.Match[str]], Worded | None]], ...] = (
    (re.compile(r"\b(doubl(?:es|ed|ing)|tripl(?:es|ed|ing)|quadrupl(?:es|ed|ing)|twice)\b", re.IGNORECASE), _multiple),
    (re.compile(rf"\b({'|'.join(_FOLDS)})-?fold\b", re.IGNORECASE), _fold),
    (re.compile(r"\b(an|one|two|three)\s+orders?\s+of\s+magnitude\b|([一两三])个数量级", re.IGNORECASE), lambda t, m: _magnitude(t, re.compile(r"(an|one|two|three|[一两三])", re.IGNORECASE).match(t, m.start()) or m)),
    (re.compile(r"(?:快|提升|提高|增加|增长|高|多|大)(?:了|出)?一倍"), _once_more),
    (re.compile(r"\b(halves|halved|halving|cut in half|cuts in half)\b", re.IGNORECASE), _halved),
    (re.compile(r"\b((?:a|an|one|two|three|four|nine)\s)?(half|third|quarter|fourth|fifth|sixth|eighth|tenth|hundredth)s?\b", re.IGNORECASE), _part),
    (re.compile(
        rf"\b(?:(?:almost|nearly|practically|virtually|essentially)\s+)?(?:no|without(?:\s+any)?|zero|negligible)\s+(?:{_CLEAR}\s+)?(?:\w+\s)?{_HARM}(?:\s(?:in|of)\s(?!its|their|our)\w+)?",
        re.IGNORECASE), _none),
    (re.compile(
        r"\b(?:almost|nearly|practically|virtually|essentially)\s+(?:nothing|zero|unchanged|identical)\b|\bnothing is (?:lost|gained)\b|\b(?:is|are|stays?|remains?|leaves?\s\w+)\s(unchanged|the same|constant)\b"
        rf"|\b(?:does|do|did)\s+not\s+(?:change|degrade|drop|differ)\b(?:\s+(?:{_CLEAR[3:-1].replace('|', 'y|').replace('measurabley', 'measurably')}y?|measurably|noticeably|significantly))?",
        re.IGNORECASE), _none),
    (re.compile(r"(翻(?:了)?(?:一)?(?:倍|番)|加倍|翻番)"), lambda _, m: Worded(m.start(), m.end(), 2.0, "ratio")),
    (re.compile(r"(减半|缩减一半|降低一半|减少一半|省一半|一半)"), lambda _, m: Worded(m.end() - 2, m.end(), 0.5, "fraction")),
    (re.compile(r"([二三四五六七八九十百千])分之([一二三四五六七八九])"), _part_zh),
    (re.compile(r"([一二两三四五六七八九])成(半)?(?![功为本立员果绩])"), _tenths_zh),
    (re.compile(
        rf"(?:质量|精度|准确率)?(?:几乎|基本|完全)?(?:无损(?!压缩|检测)|零损失)|(?:几乎|基本|大致|完全|并)?(?:没有|无|未见)(?:任何)?(?:可测量的|可测的|明显的?|显著的?|可见的)?(?:额外的?)?{_HAN_HARM}"
        rf"|(?:几乎|基本|大致|始终|保持)?(?:不变)(?!量)|几乎(?:为零|什么都\w{{1,6}}?不\w{{0,3}}?(?=[，。；,;]|$)|不(?:变|下降|增加|损失))"), _none_zh),
)  # fmt: skip
