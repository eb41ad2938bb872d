"""What a figure is compared with, as the sentence names it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_STOP_EN = re.compile(
    r"\s*(?:[,;:()\[\]—|]|\.(?=\s|$)|\s(?:and|but|whereas|while|on|at|for|when|where|if|is|are|was|were|has|have|per|because|since|so|which|that|across|under|over|does|do|costs?|takes?|needs?|alone)\b"
    r"|\s(?:of|to|by|than)\s+[$~]?\d|\s-\s)"
)
_TRAILING = r"(?:compared\s+(?:with|to)|in\s+comparison\s+(?:with|to)|relative\s+to|against|versus|vs\.?|than\s+(?:in\s+)?|over|instead\s+of|that\s+of|those\s+of|beats?|baseline\s+(?:is|of))"
_AFTER_EN = re.compile(rf"(?<![A-Za-z]){_TRAILING}\s*(?:on\s+(?=the\s))?", re.IGNORECASE)
_LEADING_EN = re.compile(
    r"^\s*(?:Compared\s+(?:with|to)|In\s+comparison\s+(?:with|to)|Relative\s+to|Against|Versus|Over|As\s+against)\s+",
    re.IGNORECASE,
)
_STOP_ZH = re.compile(
    r"[，。；,;：:、（）()]|最高|最多|最大|最快|提升|提高|降低|下降|减少|减小|节省|缩短|增加|加速|高出|高|低|快|慢|多|少|更|好|差|强|弱|相比|而言|来说|时|的\s*(?=\d)|的(?=(?:吞吐|延迟|显存|速度|成本|性能)(?!\w{0,6}的))|上升|不变|(?<![A-Za-z0-9.-])\d"
)
_COMPARE_ZH = re.compile(r"(?:相比于?|相较于?|相对于?|对比对象(?:是|为)|(?:均|都)?对比|与|和|同|较|比)\s?")
_IS_TIMES_ZH = re.compile(
    r"(?:相当于|接近|超过|约为|达到了?|只有|仅为|仅有|最高为|最高|约为|是|为|到|至|有)\s?(?P<np>[^，。；,;：:（）()是为]{1,40}?)\s?的\s?(?:约|近|不到|超过|大约)?\s?$"
)
_WHOLE = re.compile(
    r"(?:theoretical |hardware |roofline )?(?:peak|roofline|maximum|baseline|ideal|line rate)\b",
    re.IGNORECASE,
)
"""Of these a share is a comparison; of anything else it is a part."""
_EMPTY = frozenset(
    "it this that these those them each other each-other the a an its 其 之 它 此 这 自身 上 下 中".split()
)


@dataclass(frozen=True)
class Mention:
    """A baseline the sentence names, and where."""

    text: str
    start: int
    end: int
    is_leading: bool = False
    is_rival: bool = False
    """Its own figure stands before it: “versus 410 ms for the unpatched server”."""


def own_baseline(sentence: str, start: int, end: int, unit: str) -> str:
    """The baseline that is tied to one figure by its grammar; empty where there is none."""
    before, after = sentence[:start], sentence[end:]
    if m := _IS_TIMES_ZH.search(before):
        return _clean(m["np"])
    if m := re.match(r"\s?(?:of|off|from)\s+((?:the|an?|its|what)?\s*)", after):
        # “a fifth of the A100's 6.6 ms”, “within 0.5 points of BF16”, “87 % of peak”
        np = _noun_phrase(re.sub(r"^what\s+(?:the\s+)?", "", after[m.end() :]))
        if np and (unit != "fraction" or _WHOLE.match(np)):
            return np
    tied = r"\s?(?:(?:below|above|under|over)\s+(?:that of\s+)?|(?:the|its)\s+[\d.,]+\s?\S+\s(?:of|for|with)\s+)((?:the\s|an?\s)?[A-Za-z][^,;.()]{1,60})"
    if (m := re.match(tied, after)) and (np := _noun_phrase(m.group(1))):
        return np
    if m := re.match(r"\s?as\s+\w+\s+as\s+(?:with|in|on|for)\s+([^,;.()]{2,60})", after):
        return _noun_phrase(m.group(1))
    if m := re.match(
        r"\s?(?:as\s+(?:much|many|fast|large)\s+as\s+)?((?:the|its|their)\s[^,;.()]{2,60})", after
    ):
        return _noun_phrase(re.sub(r"^the\s", "", m.group(1)), own=True)
    return ""


def mentions(sentence: str) -> list[Mention]:
    """Baselines named anywhere in a sentence."""
    found = [*_english(sentence), *_chinese(sentence)]
    return sorted(found, key=lambda m: m.start)


def _english(sentence: str) -> Iterator[Mention]:
    if m := _LEADING_EN.match(sentence):
        np = _noun_phrase(sentence[m.end() :])
        if np:
            yield Mention(np, m.start(), m.end() + len(np), is_leading=True)
    for m in _AFTER_EN.finditer(sentence):
        rest = sentence[m.end() :]
        if re.match(r"[~$]?\d|half\b|twice\b|(?:one|two|three)\b", rest):
            # “versus 410 ms for the unpatched server”: the figure first, then whose it is
            if tied := re.match(
                r"[~$]?[\d.,]+\s?[^\s,;.]*(?:\s(?:per|in|of)\s\w+)?\s(?:for|with|on|in|by|of)\s+(?:the\s+)?",
                rest,
            ):
                np = _noun_phrase(rest[tied.end() :])
                if np:
                    yield Mention(np, m.start(), m.end() + tied.end() + len(np), is_rival=True)
            continue
        np = _noun_phrase(rest)
        if np:
            yield Mention(np, m.start(), m.end() + len(np))


def _noun_phrase(text: str, *, own: bool = False) -> str:
    bare = re.sub(r"^(?:the|an?)\s+", "", text.strip(), flags=re.IGNORECASE)
    bare = re.sub(r"'s\s.*$", "", bare)
    stop = _STOP_EN.search(bare)
    np = (bare[: stop.start()] if stop else bare).strip(" .")
    np = " ".join(np.split()[:8])
    if (
        not np
        or np.lower() in _EMPTY
        or np.split()[0].lower() in {"time", "times", "all", "every", "each", "requests"}
        or re.fullmatch(r"[\d.,%x ]+", np)
    ):
        return ""
    return np if own or not re.match(r"\d", np) else ""


def _chinese(sentence: str) -> Iterator[Mention]:
    for m in _COMPARE_ZH.finditer(sentence):
        word = m.group().strip()
        if re.match(r"[例率重值如较]|如何", sentence[m.end() :]) and word in {"比", "对比"}:
            continue
        if m.start() and re.search(r"[占同环配对性价相]$", sentence[: m.start()]) and word == "比":
            continue
        stop = _STOP_ZH.search(sentence, m.end())
        end = stop.start() if stop else len(sentence)
        np = _clean(sentence[m.end() : end])
        tail = sentence[end : end + 3]
        if word in {"与", "和", "同"} and not tail.startswith(("相比", "相较", "对比")):
            continue
        if np:
            yield Mention(
                np, m.start(), end, is_leading=word != "对比对象是" and not sentence[: m.start()].strip()
            )
    for m in re.finditer(
        r"(?:是|为|达到?|最高为|只有)\s?([^，。；,;：:（）()是为]{1,40}?)\s?的\s?[\d.]+\s?[倍%]",
        sentence,
    ):
        if np := _clean(m.group(1)):
            yield Mention(np, m.start(), m.end())


def _clean(np: str) -> str:
    np = re.sub(r"^(?:最高|约|只有|仅|了)", "", np.strip(" 的"))
    is_figure = re.search(r"(?<![A-Za-z0-9._-])\d", np)
    return "" if np in _EMPTY or is_figure or not np or len(np) > 40 else np
