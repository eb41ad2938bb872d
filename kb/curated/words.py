"""Words of drafts in Chinese and English: names of fields and sections, marks, decisions and actions."""

from __future__ import annotations

import re

from kb.curated.shape import Kind

FIELDS: dict[str, tuple[str, ...]] = {
    "link": ("链接", "原文链接", "原文", "地址", "网址", "link", "url", "address"),
    "source": ("来源", "出处", "source"),
    "platform": ("平台", "platform", "venue"),
    "institution": ("机构", "institution", "affiliation"),
    "authors": ("作者", "authors", "author"),
    "published": ("发布时间", "发表时间", "发布日期", "published", "publication date"),
    "credibility": ("可信度", "credibility", "trust"),
    "stars": ("评级", "评分", "星级", "rating", "stars"),
    "tags": ("标签", "tags", "keywords"),
    "category": ("建议分类", "分类", "category", "categories", "topics"),
    "action": ("建议动作", "建议操作", "动作", "suggested action", "action"),
    "decision": ("判定", "最终判定", "decision", "verdict"),
    "reason": ("保留理由", "降级理由", "丢弃理由", "理由", "reason to keep", "reason", "why keep"),
    "close": ("是否需精读", "是否需要精读", "是否精读", "read closely", "worth a close read"),
    "value": ("工程价值", "engineering value"),
    "core": ("核心观点", "核心数据", "核心内容", "关键数据", "key data", "key points", "main points"),
    "conclusion": ("结论", "关键结论", "conclusion", "key conclusion"),
    "insight": ("技术洞察评价", "insight"),
    "curator": (
        "实例",
        "策展人",
        "策展",
        "整理人",
        "整理",
        "编辑",
        "curator",
        "curated by",
        "instance",
        "editor",
    ),
    "date": ("产出时间", "时间", "日期", "produced", "date", "time"),
    "covered": ("本次覆盖", "本轮覆盖", "coverage", "covered"),
    "deduplicated": ("去重覆盖", "去重", "deduplicated"),
}
"""Field → its names; matching ignores case. The first Chinese name is the one kb writes."""

NAMES = {name: key for key, names in FIELDS.items() for name in names}
_ALTERNATIVES = "|".join(re.escape(name) for name in sorted(NAMES, key=len, reverse=True))
FIELD = re.compile(
    rf"\s*(?:\*\*)?({_ALTERNATIVES})(?:\*\*)?\s*[:：](?:\*\*)?\s*(?!//)(.*)", re.IGNORECASE | re.DOTALL
)
"""A whole line that is a field."""
INLINE_FIELD = re.compile(
    r"(?<=\s)(?=(?:来源|出处|可信度|标签|建议分类|建议动作|判定|保留理由|是否需精读|是否精读|工程价值|核心观点|核心数据|关键数据"
    r"|结论|关键结论|发布时间|作者|机构|本次覆盖|去重覆盖|Credibility|Key data|Suggested action|Tags|Read closely"
    r"|Reason to keep|Engineering value|Coverage|Deduplicated)\s*[:：])"
)
"""Where a field begins in the middle of a flattened line."""

SECTIONS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("candidates", re.compile(r"候选|未达|未入选|落选|below (?:the )?threshold|candidates|not selected|left out", re.IGNORECASE)),
    ("references", re.compile(r"参考文献|参考资料|参考链接|\breferences\b|\bbibliography\b", re.IGNORECASE)),
    ("paths", re.compile(r"写入路径|落库路径|write paths?|destinations?", re.IGNORECASE)),
    ("tags", re.compile(r"标签(?:汇总|统计)|tag (?:counts?|summary)|tags summary", re.IGNORECASE)),
    ("complement", re.compile(r"互补|与.{0,12}草稿的关系|complements?|relation to earlier", re.IGNORECASE)),
    ("advice", re.compile(r"(?:精读|审稿|更新).{0,10}建议|^建议|suggest|recommendations?|next steps", re.IGNORECASE)),
    ("verdicts", re.compile(r"(?:筛选|审核|最终)?(?:结论|判定)|保留\s*/\s*丢弃|verdicts?|decisions?", re.IGNORECASE)),
    ("insight", re.compile(r"洞察|趋势|观察|insights?|trends?|observations?", re.IGNORECASE)),
    ("other", re.compile(r"背景|元信息|说明|background|metadata|about this|^scope", re.IGNORECASE)),
)  # fmt: skip
"""What a section's title says it holds, tried in this order; anything else holds entries."""

DECISIONS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("watch", re.compile(r"降级关注|降级|观察|\bwatch\b|\bdowngraded?\b", re.IGNORECASE)),
    ("drop", re.compile(r"丢弃|放弃|舍弃|剔除|\bdrop(?:ped)?\b|\bdiscard(?:ed)?\b", re.IGNORECASE)),
    ("keep", re.compile(r"保留|入选|\bkeep\b|\bkept\b", re.IGNORECASE)),
)
ACTIONS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("read", re.compile(r"精读|\bread(?: closely)?\b|\bclose read", re.IGNORECASE)),
    ("review", re.compile(r"审稿|\breview\b", re.IGNORECASE)),
    ("adopt", re.compile(r"直接纳入|采纳|直接采用|\badopt\b", re.IGNORECASE)),
    ("follow", re.compile(r"关注|跟踪|\bfollow\b|\btrack\b", re.IGNORECASE)),
)
MARKS = "✅⚠❌✔✖☑"
STARS = "⭐★"
MEDIA = re.compile(r"博客|邮件|公众号|论坛|官网|社区|知乎|视频|新闻|媒体|订阅|播客")
"""Words that make a table cell the name of a place of publication."""
LANGUAGES = (
    "python|bash|shell|sh|console|json|yaml|toml|sql|c\\+\\+|cpp|cuda|go|rust|javascript|typescript|java|text"
)


def section_kind(title: str) -> Kind:
    """What a section holds, by its title."""
    return next((kind for kind, pattern in SECTIONS if pattern.search(title)), "entries")


def first_action(text: str) -> str | None:
    """The action named first in a text."""
    hits = [(found.start(), name) for name, pattern in ACTIONS if (found := pattern.search(text))]
    return min(hits)[1] if hits else None


def first_decision(text: str) -> str | None:
    """The decision named first in a text."""
    hits = [(found.start(), i, name) for i, (name, p) in enumerate(DECISIONS) if (found := p.search(text))]
    return min(hits)[2] if hits else None


def count_stars(text: str) -> int | None:
    """Stars drawn in a text, or written as ``4/5``; None where there are none, more than five, or a half."""
    drawn = sum(text.count(star) for star in STARS)
    if drawn:
        return drawn if drawn <= 5 else None
    found = re.search(r"(?<![\d.])([1-5])\s*/\s*5(?![\d.])", text)
    return int(found.group(1)) if found else None
