"""Lists that send entries somewhere: “read closely: 1. … (2.1) → inference/kvcache”, “file under …”."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.curated.match import assign
from kb.curated.shape import Entry, Line, Section
from kb.curated.words import first_action

MAX_LINES = 200
"""Lines of advice that are read; a person gives fewer."""
_PATH = re.compile(r"(?<![\w/.:-])([a-z][a-z0-9-]*(?:/[a-z0-9-]+)*)(/)?(?![\w.])")
_FILE = re.compile(
    r"(?:归档|收录|纳入|放入|archive(?:d)? (?:under|in)|file(?:d)? (?:under|in)|add(?:ed)? to)(?:到|至)?[:：]?\s*",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"(?<![\d.])(\d{1,2}(?:\.\d{1,2})+|\d{1,2}(?:\+\d)?)(?![\d.]*\d)")


def topic_paths(text: str) -> list[str]:
    """Paths such as ``inference/kvcache/`` in a text: they hold a slash."""
    found = [m.group(1) for m in _PATH.finditer(text) if "/" in m.group(1) or m.group(2)]
    return list(dict.fromkeys(path for path in found if len(path) <= 80))


def filed_under(text: str) -> list[str]:
    """Topic paths that follow “file under” in the same sentence."""
    found: list[str] = []
    for hit in _FILE.finditer(text):
        found.extend(topic_paths(re.split(r"[。；;]|，与|, with", text[hit.end() :])[0]))
    return list(dict.fromkeys(found))


def entry_numbers(text: str, known: Sequence[str]) -> list[str]:
    """Numbers of entries named in brackets or in a list of numbers."""
    inside = " ".join(re.findall(r"[(（]([^()（）]*)[)）]", text))
    if not inside and re.fullmatch(r"[\d\s.·,，、+&和and]+", text):
        inside = text
    return [n for n in dict.fromkeys(_REFERENCE.findall(inside)) if n in known]


def read_advice(
    sections: Sequence[Section], entries: Sequence[Entry]
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Actions and topic paths per entry number, from sections of advice; “review” wins over “read”."""
    known = [entry.n for entry in entries]
    actions: dict[str, str] = {}
    shelves: dict[str, tuple[str, ...]] = {}
    for section in sections:
        if section.kind != "advice":
            continue
        action = None
        for line in section.lines[:MAX_LINES]:
            action, is_head = _heading_action(line, action)
            if is_head or action is None:
                continue
            for n in entry_numbers(line.text, known) or _by_name(line.text, entries):
                if action in {"read", "review", "adopt", "follow"} and actions.get(n) != "review":
                    actions[n] = action
                paths = topic_paths(line.text.partition("→")[2] or "")
                shelves[n] = tuple(dict.fromkeys([*shelves.get(n, ()), *paths]))
    return actions, shelves


def _heading_action(line: Line, current: str | None) -> tuple[str | None, bool]:
    """The action a line announces for those below it; a heading that announces none ends the list."""
    text = line.text
    if not re.search(r"[:：]\s*$", text) or len(text) > 60:
        return current, False
    return first_action(text), True


def _by_name(text: str, entries: Sequence[Entry]) -> list[str]:
    head = re.split(r"→|：|:", text)[0]
    pairs = assign([head], [entry.title for entry in entries], least=0.7)
    return [entries[j].n for j in pairs.values()]
