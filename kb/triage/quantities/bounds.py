"""How a figure is qualified: up to, at least, about; read from the words right before and behind it."""

from __future__ import annotations

import re

from kb.triage.quantities.shape import Bound

_UP_EN = (
    r"up to|at most|as (?:much|many|high|low|little|fast) as|no (?:more|higher|longer|slower|later) than|not more than|(?:less|fewer|lower|smaller|shorter) than"
    r"|below|under|within|inside|maximum(?: of)?|max\.?|limited to|capped at|≤|<|not exceeding"
)
_LEAST_EN = r"at least|no (?:less|fewer|lower) than|not less than|(?:more|greater|higher|larger|longer|better) than|over|above|beyond|exceed(?:s|ing|ed)?|upwards of|minimum(?: of)?|≥|>|well over"
_ABOUT_EN = r"about|around|roughly|approximately|approx\.?|circa|ca\.|some|nearly|almost|close to|near|just (?:over|under)|on the order of|an estimated|~|≈|∼"
_FILL_EN = r"(?:\s+(?:a|an|the|only|another|just|by|of|its|in|to|than|further|total|combined|r\s?=|[a-z]\s?=))*\s*[+±$]?\s*$"
_UP_ZH = r"最高|最多|至多|最大|最快|最好时?|不超过|不高于|不多于|不到|不足|低于|少于|小于|高达|可达|上限为?|不大于|跌破|≤|<"
_LEAST_ZH = r"超过|至少|不少于|不低于|不小于|大于|高于|多于|逾|突破了?|最少|最低|起码|≥|>"
_ABOUT_ZH = r"大约|约为|约|大概|将近|接近|近乎|近|差不多|几乎|左右|~|≈|∼"
_FILL_ZH = r"(?:是|需要?|要|为|达到?|提升|提高|降低|下降|减少|节省|缩短|加速|增加|放下|容纳|支持|快|慢|高|低|多|少|处理|膨胀|增长|压缩|能|可|了|到|至|有|约|可以|仅|只|仍|花|占)*(?<!约束)(?<!节约)[\u4e00-\u9fff]{0,2}\s*[+±]?\s*$"

_BEFORE: tuple[tuple[Bound, re.Pattern[str]], ...] = (
    ("up-to", re.compile(rf"(?:(?<![A-Za-z])(?:{_UP_EN}){_FILL_EN}|(?:{_UP_ZH}){_FILL_ZH})", re.IGNORECASE)),
    (
        "at-least",
        re.compile(rf"(?:(?<![A-Za-z])(?:{_LEAST_EN}){_FILL_EN}|(?:{_LEAST_ZH}){_FILL_ZH})", re.IGNORECASE),
    ),
    (
        "about",
        re.compile(rf"(?:(?<![A-Za-z])(?:{_ABOUT_EN}){_FILL_EN}|(?:{_ABOUT_ZH}){_FILL_ZH})", re.IGNORECASE),
    ),
)
_AFTER: tuple[tuple[Bound, re.Pattern[str]], ...] = (
    (
        "up-to",
        re.compile(
            r"\s?(?:以内|之内|以下|内(?=完成|结束|返回|响应|到达|可|能|，|。|$)|or less|or fewer|at most|at best|tops\b|封顶)"
        ),
    ),
    (
        "at-least",
        re.compile(
            r"\s?(?:以上|之上|起(?![来的])|or more|or better|at least|\+(?!\d)|多(?=[个条次万，。；、的]|$))"
        ),
    ),
    ("about", re.compile(r"\s?(?:左右|上下|or so|前后(?=[，。]))")),
)
_OF_ANOTHER_ZH = re.compile(
    r"(最高|最多|至多|最大|超过|至少|约|大约|不到|接近)(?:为|是|达到?|可达)?[^，。；,;]{1,30}的\s?$"
)
_ANOTHER: dict[str, Bound] = {
    "超过": "at-least",
    "至少": "at-least",
    "约": "about",
    "大约": "about",
    "接近": "about",
}
REACH = 34
"""How many characters before a figure a qualifier can stand."""


def bound_of(text: str, start: int, end: int) -> Bound:
    """The qualifier of the figure at ``start:end`` of its sentence; ``exact`` where there is none."""
    for bound, pattern in _AFTER:
        if pattern.match(text, end):
            return bound
    head = re.split(r"[，；;。]|,\s", text[max(0, start - REACH) : start])[-1]
    if m := _OF_ANOTHER_ZH.search(head):  # “最高为同构集群的 3.2 倍”
        return _ANOTHER.get(m.group(1), "up-to")
    if re.search(
        r"\b(?:no|not|never|none|nobody|nothing)\b[^.,;]{0,30}\b(?:longer|more|higher|slower|later|worse|larger) than\s+$",
        head,
    ):
        return "up-to"
    if re.search(
        r"\b(?:scattered|spread|distributed|averaged?|measured|taken|median|mean|sum(?:med)?|search|index|lookup|retrieval|evaluat\w+|computed|trained|streamed|sent|sweep)\s+over\s+$",
        head,
    ):
        return "exact"
    hits = [(m.start(), bound) for bound, pattern in _BEFORE if (m := pattern.search(head))]
    if not hits:
        return "exact"
    if re.search(
        r"\bnot?\s+(?:more|less|fewer|higher|lower|longer|slower|better)\s+than\s*$|(?:不)(?:超过|高于|多于|大于|少于|低于|小于)",
        head,
    ):
        return (
            "at-least"
            if re.search(r"(?:less|fewer|lower)\s+than\s*$|不(?:少于|低于|小于)", head)
            else "up-to"
        )
    # the longest qualifier is the one meant: “no more than” holds “more than”
    return min(hits)[1]
