"""Digits that are no quantities: dates, versions, ids, citations, names of models, formats and devices."""

from __future__ import annotations

import re

_MONTH = r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
PATTERNS = tuple(
    re.compile(pattern, flags)
    for pattern, flags in (
        (r"https?://[^\s，。；）)]+", 0),
        (r"\barXiv\s*[:：]?\s*\d{4}\.\d{4,5}(?:v\d+)?", re.IGNORECASE),
        (r"(?<![\d.])\d{4}\.\d{5}(?:v\d+)?(?![\d.])", 0),
        (r"\b10\.\d{4,9}/\S+", 0),
        (r"\[\d{1,3}(?:\s*[,，–-]\s*\d{1,3})*\]", 0),
        (r"(?:文献|参考文献)\s*\[?\d+\]?", 0),
        (r"\b(?:Sections?|Sec\.|Tables?|Figures?|Figs?\.|Appendix|Chapter|Eqs?\.|Equation|Algorithm|Theorem|Listing|Step|Rows?|Lines?|Page|pp?\.|No\.|Ch\.|Ref\.)"
         r"\s*[A-Z]?\d+(?:\.\d+)*(?:\s*(?:,|and|–|-)\s*\d+(?:\.\d+)*)*", re.IGNORECASE),
        (r"§\s*\d+(?:\.\d+)*", 0),
        (r"第\s*\d+(?:\.\d+)*\s*(?:节|章|页|行|条|步|次|版|届|名|位|代|季度?|周|天|列|款)", 0),
        (r"(?<![代发列方公模形])(?:图|表|式|附录|算法)\s*\d+(?:\.\d+)*", 0),
        (r"(?<=[(,]\s)\d+\s*pages\b|(?<=\()\d+\s*pages\b|\bpaper\s(?:has|of|is|runs to)\s\d+\s*pages\b|\b\d+-page\b|(?:本文|论文|全文|正文|报告)\s?共?\s?\d+\s*页", 0),
        (r"\b(?:19|20)\d\d[-/.]\d{1,2}(?:[-/.]\d{1,2})?(?![\d.])", 0),
        (r"(?:19|20)\d\d\s*年(?:\s*\d{1,2}\s*月(?:\s*\d{1,2}\s*[日号])?)?|\d{1,2}\s*月\s*\d{1,2}\s*[日号]", 0),
        (rf"\b{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+(?:19|20)\d\d)?\b|\b\d{{1,2}}\s+{_MONTH}(?:\s+(?:19|20)\d\d)?\b|\b{_MONTH}\s+(?:19|20)\d\d\b", 0),
        (r"(?<![\d.,$=])(?:199\d|20[0-3]\d)(?![\d.,]\d|\d|\s*(?:tok|GB|MB|KiB|ms|req|W\b|s\b|prompts|samples|users|steps|sessions|pages|blocks|vectors|个|条|张|次|路|维|块|%|x\b|×|倍))", 0),
        (r"\b(?:[01]?\d|2[0-3]):[0-5]\d(?::\d\d)?\b(?!\s*(?:to|至|到|[-–])\s*\d+:\d)", 0),
        (r"\+?\d{1,3}[ -]\(?\d{3}\)?[ -]\d{3}[ -]\d{4}", 0),
        (r"\bv\d+(?:\.\d+)*\b|(?<![\d.])\d+\.\d+\.\d+(?:\.\d+)*(?:[-+]\w+)?", re.ASCII),
        (r"\b[Vv]ersions?\s+\d+(?:\.\d+)*|版本\s*\d+(?:\.\d+)*|\b(?:upgrad\w+|updat\w+|migrat\w+)\s+from\s+\d+\.\d+", 0),
        (r"\b(?:CUDA|ROCm|PyTorch|Python|Triton|Linux|Ubuntu|driver|kernel|release|cuDNN|NCCL|GCC)\s+\d+(?:\.\d+)*", re.IGNORECASE),
        (r"\b(?!Recall|Accuracy|Acceptance|Latency|Throughput|Precision|Speed|Cost|About|Over|Only|Under|At|From|To|By|With|Some|Nearly|Around|Up)[A-Z][A-Za-z]+\s\d+\.\d+(?![\d%])(?!\s?(?:%|x\b|×|倍|[mµμn]?s\b|GB|MB|KB|TB|tok|req|points|bits?|J\b|k?W\b|times))", 0),
        (r"(?<=[张块])\s?\d{4}(?:\s?Ti)?(?![\d.,]|\s?[个tG])", 0),
        (r"\bPorts?\s+\d+|端口\s*\d+|\broom\s+\d+(?:\.\d+)?", re.IGNORECASE),
        (r"(?<![A-Za-z0-9])[PpQq]\s?\d{2}(?:\.\d+)?(?![A-Za-z0-9])|\b\d{1,2}(?:th|st|nd|rd)\b(?:\s+percentile)?", 0),
        (r"\b\d+(?:\.\d+)?[eE][-+]?\d+\b", 0),
        (r"(?<![A-Za-z0-9])\d+(?:\.\d+)?\s?B(?:illion)?(?:-[A-Z]\d+B)?(?:\s*(?:[-–~]|to|到|至|and|/)\s*\d+(?:\.\d+)?\s?B)*(?![A-Za-z0-9/])(?!\s?/s)", 0),
        # names: letters with digits in one word
        (r"(?<![A-Za-z0-9_.$/-])(?=[A-Za-z0-9_.+/-]*[A-Za-z])(?=[A-Za-z][A-Za-z0-9_.+-]*\d)[A-Za-z][A-Za-z0-9_+]*(?:[-./][A-Za-z0-9_+.]+)*(?!=)", 0),
        (r"\b(?:Llama|Qwen|GPT|Gemma|Mistral|DeepSeek|Phi|Claude|Gemini|RTX|Radeon|Xeon|EPYC|Gaudi|Instinct|Jetson|M)\s?\d+(?:\.\d+)*s?\b", 0),
    )
)  # fmt: skip
SETTING = re.compile(
    r"\b(?:[A-Za-z]\w*_\w+|[TDPE]P|bs|batch|k|n|c|N|B|seed|rank|temperature|top[-_]?[kp]|concurrency|seq_len)\s?=\s?[\w.]+(?!\s?(?:ms|%|x\b|s\b|GB|tok))"
)
"""``name=value``: a setting, unless the text says it was found."""


def noise_spans(text: str) -> list[tuple[int, int]]:
    """Spans of a plain text whose digits are no quantities, in order."""
    found = [m.span() for pattern in PATTERNS for m in pattern.finditer(text) if re.search(r"\d", m.group())]
    return sorted(found)


def blank(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with the digits of some spans replaced by ``#``, so that nothing moves and nothing is read in them."""
    chars = list(text)
    for start, end in spans:
        for i in range(start, end):
            if chars[i].isdigit():
                chars[i] = "#"
    return "".join(chars)
