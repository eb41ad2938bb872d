"""What the last publish saw, in ``.kb/publish.json``: so that a run with nothing to do reads nothing twice.

Safe to delete. Only a run that wrote (or had nothing to write) remembers; a dry run leaves no trace. A file counts as
unchanged while its size, time and inode are; what was seen before a run is kept for files the run did not write, so an
edit made by a person meanwhile is met by the next run.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import kb
from kb.config import build
from kb.files import digest, read_bytes, sha256, stat_map, write_atomic
from kb.markers import find_blocks
from kb.model import Claim, Topic
from kb.publish.blocks import BlockState
from kb.store import MAX_PAGE_BYTES, Base

FOLDERS = ("topics", "guides", "claims", "verdicts", "figures", "items", "log", "published")
"""Everything a page depends on, and the pages."""
Stat = list[int]


@dataclass(frozen=True)
class Markers:
    """The blocks of one page and what is wrong with its markers."""

    blocks: list[tuple[str, int]]
    """Block id and line."""
    problems: list[tuple[int, str]]
    """Line and why."""


@dataclass
class Memory:
    """What was seen; see the module."""

    base: Base
    now: dict[str, Stat]
    """Files as they are at the start of this run."""
    seen: dict[str, Stat] = field(default_factory=dict)
    """Files as the last run left them."""
    keys: dict[str, str] = field(default_factory=dict)
    """Page → digest of what it was made of."""
    states: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Page file → states of its blocks."""
    notes: list[str] = field(default_factory=list)
    claims: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Claims file → its claims, parsed."""
    topics: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Topic file → the topic, parsed."""
    markers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Page file → its `Markers`."""

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return self.base.cache / "publish.json"

    def is_same(self, *names: str) -> bool:
        """Whether files are as the last run left them; absent then and now counts as same."""
        return bool(self.seen) and all(self.now.get(name) == self.seen.get(name) for name in names)

    @property
    def nothing_changed(self) -> bool:
        """Whether every file is as the last run left it."""
        return bool(self.seen) and self.now == self.seen

    def read_claims(self) -> dict[str, Claim]:
        """All claims; a file that did not change is not parsed again.

        Raises:
            BadConfig: See `kb.store.Base.claims`.
        """
        found: dict[str, Claim] = {}
        fresh: dict[str, list[dict[str, Any]]] = {}
        for path in sorted((self.base.root / "claims").glob("*.toml")):
            name = self.base.relative(path)
            if name in self.claims and self.is_same(name):
                fresh[name] = self.claims[name]
                found |= {value["id"]: build(Claim, value, path) for value in fresh[name]}
            else:
                mine = self.base.claims([path.stem])
                fresh[name] = [claim.to_json() for claim in mine.values()]
                found |= mine
        self.claims = fresh
        return found

    def read_topics(self) -> dict[str, Topic]:
        """All topics, in (order, path) order; with none changed none is parsed again.

        Raises:
            BadConfig: See `kb.store.Base.topics`.
        """
        names = sorted(name for name in self.now if name.startswith("topics/") and name.endswith(".toml"))
        if sorted(self.topics) == names and self.is_same(*names):
            found = [build(Topic, self.topics[name], self.base.root / name) for name in names]
            return {topic.path: topic for topic in sorted(found, key=lambda t: (t.order, t.path))}
        topics = self.base.topics()
        self.topics = {f"topics/{path}.toml": topic.to_json() for path, topic in topics.items()}
        return topics

    def page_names(self) -> list[str]:
        """Page files below the root, in path order."""
        return sorted(
            name
            for name in self.now
            if name.startswith("published/") and name.endswith(".md") and "/." not in name
        )

    def read_markers(self, name: str) -> Markers:
        """The blocks of a page and the problems of its markers; an unchanged page is not parsed again.

        Raises:
            BadInput: The page cannot be read.
        """
        if name in self.markers and self.is_same(name):
            kept = self.markers[name]
            return Markers([(b, n) for b, n in kept["blocks"]], [(n, w) for n, w in kept["problems"]])
        blocks, problems = find_blocks(read_bytes(self.base.root / name, limit=MAX_PAGE_BYTES))
        made = Markers([(b.id, b.line) for b in blocks], [(p.line, p.why) for p in problems])
        self.markers[name] = asdict(made)
        return made

    def kept_states(self, name: str) -> list[BlockState]:
        """States of a page's blocks as the last run left them."""
        return [BlockState(**state) for state in self.states.get(name, [])]

    def remember(
        self, written: list[str], keys: dict[str, str], states: dict[str, list[BlockState]], notes: list[str]
    ) -> None:
        """Keep what this run saw; the caller holds the write lock and has written ``written``."""
        after = dict(self.now)
        for name in written:
            self.markers.pop(name, None)
            after.pop(name, None)
            with contextlib.suppress(FileNotFoundError):
                facts = (self.base.root / name).stat()
                after[name] = [facts.st_size, facts.st_mtime_ns, facts.st_ino]
        value = {
            "code": code_digest(self.base),
            "seen": after,
            "keys": keys,
            "states": {name: [asdict(state) for state in found] for name, found in states.items()},
            "notes": notes,
            "claims": self.claims,
            "topics": self.topics,
            "markers": {name: kept for name, kept in self.markers.items() if name in after},
        }
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        write_atomic(self.path, text.encode("utf-8", "surrogateescape"), scratch=self.base.scratch)


def recall(base: Base) -> Memory:
    """What the last run saw; empty where there was none, or where kb or the base's settings have changed since."""
    memory = Memory(base, stat_map(base.root, FOLDERS))
    try:
        kept = json.loads(memory.path.read_bytes())
    except (OSError, ValueError):
        return memory
    if not isinstance(kept, dict) or kept.get("code") != code_digest(base):
        return memory
    for name in ("seen", "keys", "states", "notes", "claims", "topics", "markers"):
        setattr(memory, name, kept[name])
    return memory


def code_digest(base: Base) -> str:
    """Digest of the program that writes pages and of the base's settings."""
    here = Path(__file__).parent
    return digest(
        [kb.__version__, sorted(stat_map(here, ["."]).items()), sha256((base.root / "kb.toml").read_bytes())]
    )
