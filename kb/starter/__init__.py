"""A new knowledge base: the files `kb init` writes. Everything in it belongs to its owner from then on."""

from __future__ import annotations

from pathlib import Path

from kb.errors import WrongUse
from kb.files import write_atomic

ATTRIBUTES = """\
# Append-only records: two branches that both appended merge by keeping both lines.
*.jsonl merge=union
# Machine text and untouched imports keep their bytes on every machine.
*.jsonl text eol=lf
published/.blocks/** text eol=lf
*.orig -text
"""
IGNORE = """\
# Caches; safe to delete.
.kb/
"""
README = {
    "zh": """\
# 知识库

- `inbox/` 新草稿，`review/` 待审，`published/` 已发布：文件夹即状态，用 `git mv` 或 `kb move` 推进。
- `claims/` 论断与判定规则，`measurements/` 实测样本，`verdicts/` 由此得出的结论。
- 页面归人，`kb` 只改 `<!-- kb:begin … -->` 之间的文字。
""",
    "en": """\
# Knowledge base

- `inbox/` new drafts, `review/` being read, `published/` accepted: a folder is a state; move on with `git mv` or `kb move`.
- `claims/` what was published and the rule that judges it, `measurements/` samples, `verdicts/` what follows.
- Pages belong to people; `kb` changes only the text between `<!-- kb:begin … -->` marks.
""",
}
TOPIC = """\
title = { zh = "推理系统", en = "Inference systems" }
tags = ["LLM", "inference", "serving", "推理", "大模型推理"]
order = 10
"""
SOURCE = """\
kind = "arxiv"
url = "https://export.arxiv.org/api/query"
query = "cat:cs.DC AND abs:inference"
zone = "UTC"
topics = ["inference"]
publisher = "arXiv"
why = "distributed systems papers that speak of inference; narrow or widen the query as you like"
"""
TRIAGE = """
[triage]
keep = 2.5
watch = 1
stars = [0, 1, 3.3, 7.7]
"""
RULES = Path(__file__).parent / "rules"
"""Copies of the rules of the shipped base, which were tuned together with the thresholds; `make docs` keeps them equal."""


def files_of(lang: str) -> dict[str, str]:
    """Path below the base → text of every file of a new base."""
    settings = f'# Zone and language decide what a date means and how drafts and pages are written.\nzone = "{_zone(lang)}"\nlanguage = "{lang}"\n'
    rules = {f"rules/{path.name}": path.read_text(encoding="utf-8") for path in sorted(RULES.glob("*.toml"))}
    return {
        "kb.toml": settings + TRIAGE,
        ".gitattributes": ATTRIBUTES,
        ".gitignore": IGNORE,
        "README.md": README[lang],
        "topics/inference.toml": TOPIC,
        "sources/arxiv-serving.toml": SOURCE,
        **rules,
    }


def _zone(lang: str) -> str:
    return "Asia/Shanghai" if lang == "zh" else "UTC"


def make_base(root: Path, lang: str, *, dry_run: bool = False) -> list[str]:
    """Write the files of a new base that are not there yet; nothing existing is touched.

    Args:
        root: Its folder; made if absent.
        lang: ``zh`` or ``en``.
        dry_run: Only say what would be written.

    Returns:
        Paths below ``root`` that were, or would be, written; empty where the base exists.

    Raises:
        WrongUse: ``root`` is a file or cannot be written.
    """
    if (root / "kb.toml").is_file():
        return []
    if root.exists() and not root.is_dir():
        raise WrongUse(
            f"{root}: not made", cause="it is a file", remedy="give a folder", next_command="kb init DIR"
        )
    missing = {name: text for name, text in files_of(lang).items() if not (root / name).exists()}
    if dry_run:
        return list(missing)
    try:
        # kb.toml last: until it is there, an interrupted init starts again
        for name, text in sorted(missing.items(), key=lambda pair: pair[0] == "kb.toml"):
            write_atomic(root / name, text.encode(), scratch=root / ".kb/tmp")
    except OSError as error:
        raise WrongUse(f"{root}: not made", cause=str(error), remedy="check its permissions") from error
    return list(missing)
