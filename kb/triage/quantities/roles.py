"""Claim or condition: whether the text reports a figure or sets the scene with it."""

from __future__ import annotations

import re

from kb.triage.quantities.numbers import Atom
from kb.triage.quantities.shape import Bound, Role
from kb.triage.quantities.text import clause_end, clause_start

_DEVICE = re.compile(
    r"\s?(?:个|张|块)?\s?(?:NVIDIA |AMD |Intel )?(?:[A-Z]+\d+\w*|H#|[A-Z]+#+\w*|GPUs?\b|cards?\b|NPUs?\b|TPUs?\b|卡)"
)
_IMPERATIVE = re.compile(
    r"^\s*(?:Set|Raise|Lower|Use|Increase|Decrease|Keep|Choose|Try|Pass|Configure|Run|Start|Call)\b",
    re.IGNORECASE,
)
_SET_ZH = re.compile(
    r"(?:设为|设成|设置为|调到|调至|调为|取值为?|配置为|建议(?:设)?为?|设定为|改为|改成|换成|换为|升级到|升级为|限制?在|限制到|固定在|锁定在|(?:若|如果|假设|假如)[^，。；]{0,10}为)\s?$"
)
_CONDITION_NOUN = (
    r"(?:page|batch|block|group|chunk|window|tile|context|prompt|input|output|sequence|draft|vocabulary|beam|budget|cache|memory|head|layer|embedding|buffer)"
    r"(?:\s(?:size|sizes|length|budget|dimension|width|window))?|batch|concurrency|temperature|learning rate|seed|groups? of|blocks? of|pages? of|chunks? of|budget of|limit(?: of)?|SLO(?: of)?"
    r"|timeout(?: of)?|deadline(?: of)?|prices? of|setting(?: of)?|port|TP|DP|PP|EP|rank|top-[kp]|context of|length(?: of)?|size(?: of)?|depth(?: of)?|degree(?: of)?|load of|interval of|threshold(?: of)?"
)
_AFTER_CONDITION_NOUN = re.compile(
    rf"\b(?:{_CONDITION_NOUN})\s*(?:of|is|=|:|at|to|reaches|from)?\s*(?:about|up to|more than|at least|~)?\s*$",
    re.IGNORECASE,
)
_CONDITION_NOUN_ZH = re.compile(
    r"(?:批大小|批次|批量|批处理大小|batch(?: size)?|并发数?|上下文(?:长度)?|草稿长度|输入(?:长度)?|输出(?:长度)?|序列长度|页大小|块大小|窗口|温度|预算|学习率|种子|维度|层数|头数|(?<!接受)长度"
    r"|分组大小|阈值|负载|租金上限|页面大小|每页|每块|每组|每)\s?(?:为|是|取|达到?|设为|升到|降到|降至|升至|低于|高于|超过)?\s?$",
    re.IGNORECASE,
)
_WHEN_ZH = re.compile(
    r"[\u4e00-\u9fffA-Za-z ]{0,10}?(?:(?<!同)时(?![间延长刻序代钟])|的?情况下|条件下|后(?=[，,]|$)|(?<=[叠载量度率长算])下(?=[，,、 ]|$))"
)
_CHAIN_ZH = re.compile(r"[\u4e00-\u9fff ]{0,6}、[^，。；]{0,18}?(?:(?<!同)时(?![间延长刻序代])|下(?=[，,]))")
_SCENE_ZH = re.compile(r"(?:按|以)(?:每\s?\w{1,8}\s?)?$|只?保留\s?$|使用\s?$|采用\s?$")
_SCENE_AFTER_ZH = re.compile(r"\s?(?:的缓存|的预算|的前缀|前缀|一组|计算|的上下文|上下文|的上限)")
_PREPOSITION = re.compile(
    r"\b(?:at|with|for|under|below|above|when|if|given|assuming|beyond|once|until|of|in|on|after|across|over)\b(?:\s+(?:an?|the|only|about|up to|more than|some|least|than|its))*\s*$",
    re.IGNORECASE,
)
_TARGET = re.compile(
    r"[\s-]?(?:\w+\s)?(?:SLOs?\b|targets?\b|deadlines?\b|limits?\b|goals?\b|timeouts?\b|budgets?\b|cap\b|links?\b|networks?\b|NICs?\b|Ethernet|interconnects?\b|traces?\b|windows?\b|intervals?\b)"
    r"|\s?的?(?:\w{0,4})(?:目标|上限|SLO|限制|要求|预算|互联|网络|网卡|轨迹|窗口)|\s?(?:HBM|VRAM|RAM|cards?\b|GPUs?\b|machines?\b|nodes?\b|的?(?:显卡|卡(?![顿住])|机器|节点))",
    re.IGNORECASE,
)
"""What a figure is a limit or a property of, where it is no result."""
_DEVICE_BEFORE = re.compile(r"(?:[A-Z][A-Za-z]*[\s-]?#+\w*(?:\s[A-Z]\w+)?|GPUs?|cards?|卡)\s?[（(]\s?$")
"""“RTX 4090 (24 GB)”: the size of the device."""
_GERUND = re.compile(r"^\s*(?:By\s)?[A-Z][a-z]+ing\s+(?:away\s|out\s|only\s|about\s|the\s\w+\s)?$")
_RATE_OF = re.compile(
    r"\b(?:retention|eviction|acceptance|overlap|sparsity|pruning|budget|compression|dropout|occupancy)(?:\s(?:rate|ratio|level))?\sof\s(?:about\s|only\s)?$",
    re.IGNORECASE,
)
_RESULT = re.compile(
    r"\b(?:achiev|giv|gav|reach|yield|get|got|obtain|deliver|show|report|measur|observ|attain)\w*\s[^;]*\b(?:an?|the)\s[\w\s]{0,30}$",
    re.IGNORECASE,
)
"""“gives 2.1x and an acceptance rate of 0.68”: found, not set."""
_CHANGE = re.compile(
    r"\b(?:cut|reduc|lower|rais|drop|fall|fell|grow|grew|shr[aiu]nk|increas|decreas|trim|improv|ris|rose|bring|brought|push|squeez)\w*\b",
    re.IGNORECASE,
)
_PER_DAY = re.compile(
    r"\s(?:a|an|per|each|every)\s(?:day|second|minute|hour|week|month|year)\b|\s?/\s?(?:天|日|day)"
)
_PER_DAY_ZH = re.compile(r"(?:每天|每日|日均|每月|每年|每小时|每周|每分钟)[^，。；\d]{0,8}$")
_EVERY = re.compile(r"\bevery\s$|每(?:隔)?\s?$", re.IGNORECASE)
_GROWS = re.compile(
    r"\b(?:context|batch|prompt|sequence|input|output|window|page|block|concurrency|load|draft)(?:\s(?:size|length|window))?\s(?:\w+\s){0,3}$",
    re.IGNORECASE,
)
"""“when the context grew from 4K to 128K”: what was varied."""
_DURATION = re.compile(r"\b(?:during|for|over|in)\s(?:the\s)?(?:last|past|first|next)\s$", re.IGNORECASE)
_COUNT_PREPOSITION = re.compile(
    r"\b(?:search|index|lookup|retrieval|evaluat\w+|averaged?|measured|computed|trained|sweep|runs?)\s(?:was\s)?over\s$|\b(?:at|with|for|when|if|given|assuming|once|until|of|in|on|after|across)\b(?:\s+(?:an?|the|only|about|up to|more than|some|least|than|its))*\s*$",
    re.IGNORECASE,
)
_SCENE_NOUN = re.compile(
    r"\s?(?:prefix |token |cache |request |weight )?(?:overlap|eviction|evicted|sparsity|load\b|utili[sz]ation|confidence|acceptance|budget|retention|retained|context\b|in(?=\s+and\b|\s*$)|out\b|dropout|quantile|occupancy|of the cache\b|token budget)",
    re.IGNORECASE,
)
_CAPACITY = re.compile(
    r"\b(?:serv(?:es?|ed|ing)|sustain(?:s|ed)?|keeps?|kept|holds?|handl(?:es?|ed)|supports?|fits?|accommodat\w+|needs?|requires?|replac(?:es?|ed)|remov(?:es?|ed)|eliminat\w+|saves?|saved"
    r"|emits?|produc(?:es?|ed)|complet(?:es?|ed)|finish(?:es|ed)?|touch(?:es|ed)?|occup(?:y|ies|ied)|spans?|spread over|scattered over|reach(?:es|ed)?|hosts?)\s+(?:about |around |up to |over |some |roughly |only |just |~)*$",
    re.IGNORECASE,
)
_CAPACITY_ZH = re.compile(
    r"(?:承载|容纳|支撑|放下|服务|只需|需要|节省|减少了?|替代|产出|产生|完成|散落在|分布在|占用|触及|达到?|处理|支持|同时运行|只有|仅有)\s?(?:约|近|超过|最多|至少|了)?\s?$"
)
_ADJECTIVAL = re.compile(r"\b(?:longer|larger|shorter|smaller|bigger|deeper|older) than\s*$", re.IGNORECASE)
"""“sessions longer than 32K tokens”: which ones, not how many."""
_OF_WORK_ZH = r"\s?的(?:会话|请求|序列|上下文|提示|输入|输出|文档|模型|用户|任务)"
_ENOUGH = re.compile(
    r"\s?(?:(?:is|are|was|were)\s+(?:enough|sufficient|best|optimal|ideal)|suffices?\b|works? best|最好|最佳|最优|就?足够|即可|就够|为最优)"
)
_CAPACITY_NOT = frozenset(
    "token tokens gpu gpus epoch epochs layer layers head heads model models run runs seed seeds 张 轮 维 层 卡 块 台".split()
)
_REPEAT = re.compile(
    r"\b(?:repeat\w*|ran|run|runs|executed|sampled|tried|trained|averaged|evaluated)\b[^.;]{0,24}$|\bretr(?:y|ies|ied)\b|重试|重复|跑了|执行|运行|训练",
    re.IGNORECASE,
)
_COMPARATIVE = re.compile(
    r"\s?(?:as\s|that\b|those\b|the\b|its\b|their\b|faster|slower|higher|lower|less|more|smaller|larger|cheaper|better|shorter|longer|fewer|bigger|quicker|greater|below|above|speed|improv|reduc|over\b|than\b|,|;|\.|\)|$)",
    re.IGNORECASE,
)


def role_of(sentence: str, atom: Atom, bound: Bound) -> Role:
    """Claim, condition, or noise for a number that says neither."""
    start, end = atom.start, atom.end
    begin = clause_start(sentence, start)
    head, tail = sentence[begin:start], sentence[end : clause_end(sentence, end)]
    if _is_scene(sentence, head, tail, atom):
        return "condition"
    if atom.unit == "ratio":
        return _ratio(sentence, head, tail, atom, bound)
    if atom.unit == "count":
        return _count(head, tail, atom, bound, sentence[start:end])
    if atom.unit == "bits":
        return (
            "condition"
            if "-" in sentence[start:end]
            or (not atom.decimals and not re.search(r"(?:is|为|到|至)\s?$", head))
            else "claim"
        )
    return "claim"


def best(text: str, end: int) -> bool:
    """True where “is best”, “are enough”, 最优 stand right behind a figure."""
    return bool(_ENOUGH.match(text, end))


def _is_scene(sentence: str, head: str, tail: str, atom: Atom) -> bool:
    """Words that set the scene around any kind of figure."""
    if atom.unit == "bytes" and (
        _DEVICE_BEFORE.search(sentence[: atom.start]) or re.match(r"\s?的\s?[A-Z]", tail)
    ):
        return True
    if _IMPERATIVE.match(sentence[: atom.start]) and not re.search(r"[;；,，]", sentence[: atom.start]):
        return True
    if atom.is_from and atom.unit in {"", "count"} and _GROWS.search(head):
        return True
    named = _names_condition(head, atom)
    if _SET_ZH.search(head) or named or _SCENE_ZH.search(head):
        return not _ENOUGH.match(tail)
    if (_CONDITION_NOUN_ZH.search(head) and _weak(atom)) and not _ENOUGH.match(tail):
        return True
    if _WHEN_ZH.match(tail) or _CHAIN_ZH.match(tail) or _SCENE_AFTER_ZH.match(tail):
        return True
    if re.match(r"\s?confidence", tail) or (
        _SCENE_NOUN.match(tail) and (_PREPOSITION.search(head) or atom.unit in {"count", ""})
    ):
        return True
    if (
        atom.unit == "bytes"
        and re.match(r"\s?of\s(?:GPU\s)?(?:memory|HBM|RAM|VRAM)\b", tail)
        and _PREPOSITION.search(head)
    ):
        return True
    if atom.unit in {"s", "bytes", "bytes/s", "bits/s"} and (
        _TARGET.match(tail) or _DURATION.search(head) or _EVERY.search(head)
    ):
        return True
    if atom.unit in {"fraction", "count"} and (
        (_RATE_OF.search(head) and not _RESULT.search(sentence[: atom.start]))
        or _GERUND.match(sentence[: atom.start])
    ):
        return True
    return _is_given(sentence, head, atom)


def _names_condition(head: str, atom: Atom) -> bool:
    """Whether the noun right before a figure is one of a set-up: “batch size of 8”, but not “cuts memory from 71 GB”."""
    named = _AFTER_CONDITION_NOUN.search(_without_from(head))
    if not named:
        return False
    if atom.unit == "count" and atom.decimals and re.search(r"\bis\s*(?:about\s|~)?$", head):
        return False
    if atom.unit in {"ratio", "tok/s"}:
        return False
    if atom.unit == "fraction" and not re.search(r"(?:of|is|=|at)\s*$", head):
        return False
    return not (atom.is_from and atom.unit not in {"", "count"} and _CHANGE.search(head))


def _weak(atom: Atom) -> bool:
    if atom.is_from:
        return atom.unit in {"", "count"}
    return atom.unit in {"", "count", "fraction", "bits", "bytes"} and not atom.is_range


def _without_from(head: str) -> str:
    return re.sub(r"\s*(?:from|between|to)\s*$", "", head)


def _is_given(sentence: str, head: str, atom: Atom) -> bool:
    """“At $4 per hour and 1,850 tok/s a million tokens cost …”, “… at 8 requests per second”."""
    before = sentence[: atom.start]
    if (
        re.match(r"\s*(?:At|With|For|Under|Given|Assuming)\s", before)
        and "," not in before
        and _subject_follows(sentence[atom.end :])
    ):
        return True
    is_rate = atom.unit in {"req/s", "usd/h"} and re.search(r"\bat\s+(?:about |~|around )?$", head)
    return bool(is_rate) and not re.search(r"\b(?:runs?|peaks?|ran|sits|stands)\s+at\s+$", head)


def _subject_follows(rest: str) -> bool:
    return bool(
        re.match(
            r"\s*(?:,\s|(?:and|or)\s[^.;]{1,30}?\s(?:a|an|the|one)\s|\s(?:a|an|the|one|each|we)\s)", rest
        )
    )


def _ratio(sentence: str, head: str, tail: str, atom: Atom, bound: Bound) -> Role:
    quote = sentence[atom.start : atom.end]
    if ":" in quote or "：" in quote:
        return "claim"
    if _DEVICE.match(tail) and re.search(r"[x×]\s?$", quote):
        return "condition"
    if quote.endswith("times"):
        if _REPEAT.search(head):
            return "condition"
        is_compared = (
            _COMPARATIVE.match(tail)
            or bound != "exact"
            or re.search(r"\btimes\s(?:that|those)\b", sentence[atom.end :])
        )
        return "claim" if is_compared else "condition"
    return "claim"


def _count(head: str, tail: str, atom: Atom, bound: Bound, quote: str) -> Role:
    noun = atom.noun.lower()
    if _ENOUGH.match(tail) or _PER_DAY.match(tail) or _PER_DAY_ZH.search(head):
        return "claim"
    if atom.is_from or atom.decimals:
        return "condition" if re.search(r"改为|改成|调到|调至|调整|设", quote) else "claim"
    is_workload = noun in _CAPACITY_NOT or noun[:1] in _CAPACITY_NOT
    if re.search(r"\baverag(?:e|es|ed|ing)\s(?:about\s|only\s)?$|平均(?:为|约|有)?\s?$", head):
        return "claim"
    if _COUNT_PREPOSITION.search(head) or _ADJECTIVAL.search(head) or re.match(_OF_WORK_ZH, tail):
        return "condition"
    if is_workload and not (noun.startswith("token") and bound != "exact"):
        return "condition"
    if noun.startswith("次") and _REPEAT.search(head):
        return "condition"
    if bound != "exact" and not re.match(r"\s?(?:in|out)\b", tail):
        return "claim"
    return "claim" if _CAPACITY.search(head) or _CAPACITY_ZH.search(head) else "condition"
