"""A small knowledge base on disk, and the program run on it as a user would."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from kb.cli.root import run
from kb.model import (
    Claim,
    Figure,
    Interval,
    Item,
    Level,
    Outcome,
    Point,
    Series,
    Stated,
    Text,
    Topic,
    Verdict,
)
from kb.store import Base

TOPIC = "inference/kvcache"


def toml(value) -> str:
    """A value of a claim in TOML."""
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items() if v is not None) + "}"
        )
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=True)


@dataclass
class Shelf:
    """A base under test and the ways to put things into it."""

    base: Base

    @property
    def root(self) -> Path:
        return self.base.root

    @property
    def page(self) -> Path:
        return self.base.page_path(TOPIC)

    def kb(self, *args: str) -> int:
        """Run ``kb ARGS`` on this base."""
        return run(["-C", str(self.root), *args])

    def topic(self, path: str = TOPIC, **values) -> None:
        values = {"title": {"zh": "KV cache 压缩工程陷阱", "en": "KV cache"}, **values}
        Topic(path=path, **values)
        text = "".join(f"{key} = {toml(value)}\n" for key, value in values.items())
        self.base.write(self.root / "topics" / f"{path}.toml", text)

    def claim(self, name: str = "eai/evict-14400", **values) -> Claim:
        """Put one more claim into its system's file, or replace it."""
        values = {
            "item": "arxiv:2606.06302",
            "statement": {"zh": "逐出九成 token 几乎不归还页", "en": "evicting 90 % frees almost no page"},
            "metric": "freed_fraction",
            "unit": "fraction",
            "low": 0.0,
            "high": 0.05,
            "bound": "about",
            "provenance": "primary",
            "topics": [TOPIC],
            **values,
        }
        claim = Claim(id=name, **values)
        path = self.root / "claims" / f"{name.split('/', maxsplit=1)[0]}.toml"
        old = self.base.claims([path.stem]) if path.exists() else {}
        old[name] = claim
        text = "\n".join(
            "[[claim]]\n"
            + "".join(f"{k} = {toml(v)}\n" for k, v in c.to_json().items() if v not in (None, ()))
            for c in old.values()
        )
        self.base.write(path, text)
        return claim

    def verdict(self, name: str = "eai/evict-14400", value: float = 0.185, **values) -> None:
        """Judge a claim; other verdicts of its system stay."""
        values = {
            "verdict": Outcome.PARTLY,
            "level": Level.DERIVED,
            "source": Stated(low=0.0, high=0.05, unit="fraction", bound="about"),
            "measured": Interval(low=0.157, value=value, high=0.213, n=30, unit="fraction"),
            "reason": "some survivor patterns free pages",
            "reason_zh": "有的保留方式能归还页",
            "repro": "paged-eviction",
            "machine": "cpu",
            "at": "2026-07-02T03:05:00Z",
            "run": "r1",
            **values,
        }
        verdict = Verdict(claim=name, **values)
        system = name.split("/", maxsplit=1)[0]
        kept = [
            v for v in self.base.verdicts().values() if v.claim.startswith(f"{system}/") and v.claim != name
        ]
        self.base.write_verdicts(system, [*kept, verdict])

    def figure(self, name: str = "freed", **values) -> Figure:
        values = {
            "title": Text(zh="页越大归还越少", en="Larger pages give less back"),
            "x": Text(zh="每页 token 数", en="tokens per page"),
            "y": Text(zh="归还的页占比", en="pages given back, share"),
            "x_scale": "log2",
            "series": (
                Series(
                    label=Text(zh="均匀保留", en="uniform"),
                    points=(
                        Point(x=1, y=0.9, low=0.88, high=0.92),
                        Point(x=16, y=0.185, low=0.157, high=0.213),
                    ),
                ),
                Series(
                    label=Text(zh="闭式", en="closed form"),
                    points=(Point(x=1, y=0.9), Point(x=16, y=0.18515)),
                    predicted=True,
                ),
            ),
            "alt": Text(zh="归还占比从 0.9 降到 0.185", en="from 0.9 down to 0.185"),
            "topics": (TOPIC,),
            **values,
        }
        figure = Figure(name=name, repro="paged-eviction", **values)
        self.base.write_figure(figure)
        return figure

    def item(self, name: str = "arxiv:2606.06302", version: str = "1", **values) -> None:
        stamp = {"at": "2026-06-10", "field": "published"}
        values = {
            "source": "arxiv",
            "title": "Tangram",
            "url": "https://arxiv.org/abs/2606.06302",
            "first_seen": stamp,
            "submitted": stamp,
            "fetched_at": "2026-06-10T00:00:00Z",
            **values,
        }
        self.base.append_items([Item(id=name, version=version, **values)])

    def edit(self, old: str, new: str) -> None:
        """What a reviewer does in an editor: replace text in the page, once."""
        data = self.page.read_bytes()
        assert data.count(old.encode()) >= 1
        self.page.write_bytes(data.replace(old.encode(), new.encode(), 1))

    def snapshot(self) -> dict[str, tuple[bytes, int]]:
        """Path → bytes and modification time of every file outside ``.git``."""
        files = sorted(p for p in self.root.rglob("*") if p.is_file() and ".git" not in p.parts)
        return {str(p.relative_to(self.root)): (p.read_bytes(), p.stat().st_mtime_ns) for p in files}

    def bytes(self) -> dict[str, bytes]:
        """Path → bytes of every tracked file."""
        return {name: data for name, (data, _) in self.snapshot().items() if not name.startswith(".kb/")}


@pytest.fixture
def empty(tmp_path, monkeypatch) -> Shelf:
    """A base with settings and nothing else, in a path with a space."""
    monkeypatch.setenv("KB_NOW", "2026-07-02T03:05:00Z")
    monkeypatch.setenv("KB_CONFIG_DIR", str(tmp_path / "config"))
    root = tmp_path / "a base"
    root.mkdir()
    (root / "kb.toml").write_text('zone = "Asia/Shanghai"\nlanguage = "zh"\ntitle = "推理知识库"\n')
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return Shelf(Base(root))


@pytest.fixture
def shelf(empty) -> Shelf:
    """A base with one topic, two claims, one judged, one figure and one paper; nothing published yet."""
    empty.topic(
        intro={"zh": "驱逐省下的是 token，不一定是显存。", "en": "Eviction saves tokens, not always memory."}
    )
    empty.claim()
    empty.claim(
        "eai/compaction", statement={"zh": "压实要搬动 token", "en": "compaction moves tokens"}, planned="CPU"
    )
    empty.verdict()
    empty.figure()
    empty.item()
    return empty
