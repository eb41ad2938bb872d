"""Bare numbers from 0 to 1 that a word makes a share: “acceptance is 0.8”, “默认 0.92”."""

from __future__ import annotations

import re
from dataclasses import replace

from kb.triage.quantities.numbers import Atom

_NAME = (
    r"acceptance(?: rate)?|recall(?:@\d+)?|precision|hit rate|accuracy|utili[sz]ation|gpu_memory_utilization|retention|sparsity|share|fraction|F1|MRR|nDCG|AUC|index(?:\))?|指数"
    r"|命中率|召回率|准确率|精确率|接受率|利用率|保留率|占比|比例"
)
_LINK = r"\s?(?:is|of|at|reaches|reached|was|stays|:|：|=|为|是|达到?|仍有|仍为|仍|保持在?|还有|约|≥|≤|>|<|~|default(?:s to)?|默认(?:值)?(?:为)?|to|around|about)?"
_SHARE = re.compile(rf"(?:{_NAME})(?:{_LINK}){{1,3}}\s?$", re.IGNORECASE)
_SCORE = re.compile(
    r"\b(?:perplexity|loss|error|BLEU|ROUGE(?:-\w)?|WER|困惑度|误差)\s(?:\w+\s){0,2}(?:is|of|by|to|within|below|under|about|at most)\s?$",
    re.IGNORECASE,
)
_DEFAULT = re.compile(r"(默认(?:值)?(?:为)?\s?|\bdefaults?\s(?:is|to|of)\s(?:[\w]+\sis\s)?)$", re.IGNORECASE)
_EARLIER = re.compile(
    r"((?:旧版|原为|此前|之前)(?:为)?\s?|\b(?:previously|formerly|was|earlier)\s)$", re.IGNORECASE
)


_RATIO_WORD = r"speed-?ups?|gains?|factors?|ratios?|coefficients?|correlations?|R²|R2|加速比?|增益|比值|系数|相关性?|倍数"
POINT_WORD = (
    r"scores?|perplexity|PPL|area|GSM[\w#]*|MATH(?:-#+)?|AIME[#\d]*|LongBench(?:-E)?|MMLU(?:-Pro)?|HumanEval|MBPP|MRCR|RULER|BLEU|ROUGE(?:-\w)?|WER|MT-Bench"
    r"|accuracy|average|得分|总分|均分|分数|平均分|困惑度|准确率|曲线下面积"
)
"""What is counted in points: benchmarks, scores, perplexity."""
_COUNT_WORD = r"accept(?:ed|ance) lengths?|接受长度|接受(?:的)?(?:token|词元)数"
_GOES_ON = re.compile(
    r"(?:比[^，。；,]{1,20}?(?:高|低|多|少|好|差)(?:出|了)?|\b(?:ris(?:es?|ing)|rose|drops?|dropped|falls?|fell|improv(?:es?|ed)|gains?|gained|loses|lost|grows?|grew|up|down|climbs?|increas(?:es?|ed)|decreas(?:es?|ed))\s(?:only\s)?(?:by\s|to\s)?"
    r"|[,;]\s(?:and\s)?(?:up\s|down\s)?to\s|\b(?:and|versus|vs\.?|against|than|at|only|just)\s|(?:降|升|提升|下降|提高|上升|跌|涨|增加|减少)(?:了|到|至)?|为|是|只有|仅有?|对)\s?(?:约|about\s|only\s)?$",
    re.IGNORECASE,
)
"""A bare number that goes on where a sentence speaks of scores: “with 2-bit keys it rises by 1.3”, “比基线高 1.1”."""
_PREDICATE = r"(?:\b(?:is|are|was|were|reach(?:es|ed)?|stays?|averages?|equals?|of|to|at|above|below|over|about|around|only|up)|为|是|达到?|升至|升到|降到|降至|约|高于|低于|超过|只有|仅)"
_STATED = {
    unit: re.compile(
        rf"(?:(?<![A-Za-z])(?:{words})(?![A-Za-z])[^,，;；。\d]{{0,50}}?(?:{_PREDICATE}\s?){{1,3}}|(?<![A-Za-z])(?:{words})(?:\s?[:：])?\s?|\bscores?\s(?:about\s|only\s)?)$",
        re.IGNORECASE,
    )
    for unit, words in (("ratio", _RATIO_WORD), ("points", POINT_WORD), ("count", _COUNT_WORD))
}
"""What a bare decimal is, by the word it is said of: “the speed-up is 5.08”, “scores 80.6 on …”."""


def is_factor(head: str) -> bool:
    """True where the subject of a clause is a speed-up, a gain or another factor."""
    return bool(
        re.search(rf"(?<![A-Za-z])(?:{_RATIO_WORD})(?![A-Za-z])[^,，;；。\d]{{0,30}}$", head, re.IGNORECASE)
    )


def stated(text: str, atom: Atom) -> Atom | None:
    """A bare decimal as a factor or a score, or None where no such word is the subject."""
    if not atom.decimals:
        return None
    head = text[max(0, atom.start - 120) : atom.start]
    if re.search(r"\bscores?\s(?:about\s|only\s)?$", head):
        return replace(atom, unit="points")
    if re.search(
        rf"(?:{_RATIO_WORD})(?![A-Za-z])[^.;。；]*\d[^;；。]*\b(?:but|and|yet)\s(?:only\s|just\s)?$",
        head,
        re.IGNORECASE,
    ):
        return replace(atom, unit="ratio")
    found = next((replace(atom, unit=unit) for unit, said in _STATED.items() if said.search(head)), None)
    if found is None and _GOES_ON.search(head) and speaks_of_scores(head):
        return replace(atom, unit="points")
    return found


def speaks_of_scores(head: str) -> bool:
    """True where a sentence has named a benchmark, a score or a gain in points before."""
    said = rf"(?<![A-Za-z])(?:{POINT_WORD})(?![A-Za-z])|\d\s?(?:percentage )?points?\b|个百分点"
    return bool(re.search(said, head, re.IGNORECASE))


def shares(text: str, atom: Atom) -> Atom | None:
    """A bare number as a fraction, or None where nothing makes it one.

    Args:
        text: The sentence.
        atom: A number without unit.
    """
    head = text[: atom.start]
    if re.search(
        rf"\b(?:at|with|for)\s(?:an?\s|the\s)?(?:\w+\s)?(?:{_NAME})(?:\sof)?\s?$", head, re.IGNORECASE
    ):
        return None
    if _SCORE.search(head) and atom.decimals:
        return replace(atom, unit="points")
    if not 0 <= atom.low <= atom.high <= 1 or not atom.decimals:
        return None
    if m := _DEFAULT.search(head):
        is_zh = m.group(1)[0] > "\u33ff"
        return replace(atom, unit="fraction", start=m.start() if is_zh else atom.start)
    if (m := _EARLIER.search(head)) and re.search(r"(?:默认|default|is|为)[^。.]{0,12}\d", head):
        return replace(atom, unit="fraction", start=m.start() if m.group(1)[0] > "\u33ff" else atom.start)
    if re.search(
        rf"(?:{_NAME})[^.。;；]{{0,20}}\d[^。;]*\b(?:merely|only|just|and|to|vs\.?|against)\s$|(?:{_NAME})[^。]{{0,20}}\d[^。；]*(?:只有|仅有?|仅为|为|降到|降至)\s?$",
        head,
        re.IGNORECASE,
    ):
        return replace(atom, unit="fraction")
    return replace(atom, unit="fraction") if _SHARE.search(head) else None
