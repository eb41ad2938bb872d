"""1,000 pages and 10,000 claims: how long publish, search and the site take. Prints a table; writes into a scratch folder.

make bench-publish            publish and search
make bench-publish ARGS=--site   the site too
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kb.model import Interval, Level, Outcome, Stated, Verdict
from kb.publish.run import make_plan, publish
from kb.search import search
from kb.store import Base

NUM_PAGES, NUM_CLAIMS, NUM_SYSTEMS = 1_000, 10_000, 100
WORDS = "显存 命中率 压缩 驱逐 分页 调度 抢占 投机 解码 吞吐 延迟 前缀 缓存 量化 带宽 并发 负载 陷阱".split()
BUDGETS_S = {"unchanged": 2.0, "one claim": 3.0, "search p95": 0.050, "site": 60.0}


def make_base(root: Path) -> Base:
    """A base of the asked size: topics, claims spread over systems and topics, a third of them judged."""
    rng = random.Random(20260610)
    root.mkdir(parents=True)
    (root / "kb.toml").write_text('language = "zh"\ntitle = "bench"\n', encoding="utf-8")
    num_topics = NUM_PAGES - NUM_SYSTEMS - 1  # each system has a page, the ledger is one
    for number in range(num_topics):
        title = "".join(rng.sample(WORDS, 3))
        text = f'order = {number}\ntitle = {{zh = "{title} {number}", en = "topic {number}"}}\nintro = {{zh = "{title * 10}", en = ""}}\n'
        path = root / f"topics/t{number // 100}/p{number}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    base = Base(root)
    per_system = NUM_CLAIMS // NUM_SYSTEMS
    for system in range(NUM_SYSTEMS):
        claims, verdicts = [], []
        for number in range(per_system):
            name = f"s{system}/c{number}"
            topic = rng.randrange(num_topics)
            claims.append(claim_text(name, f"t{topic // 100}/p{topic}", rng))
            if number % 3 == 0:
                verdicts.append(verdict_of(name, rng))
        base.write(root / f"claims/s{system}.toml", "\n".join(claims))
        base.write_verdicts(f"s{system}", verdicts)
    return base


def claim_text(name: str, topic: str, rng: random.Random) -> str:
    """One claim in TOML."""
    said = "".join(rng.sample(WORDS, 4))
    return (
        f'[[claim]]\nid = "{name}"\nitem = "arxiv:2606.{rng.randrange(20_000):05d}"\nprovenance = "primary"\n'
        f'statement = {{zh = "{said} 提高", en = "statement of {name}"}}\nmetric = "speed_up"\nunit = "ratio"\n'
        f'low = 1.5\nhigh = 2.5\nbound = "range"\nbaseline = "vLLM"\nconditions = {{hardware = "H200", model = "8B"}}\n'
        f'topics = ["{topic}"]\n'
    )


def verdict_of(name: str, rng: random.Random) -> Verdict:
    """A verdict with an interval."""
    value = 1 + rng.random()
    return Verdict(
        claim=name, verdict=Outcome.PARTLY, level=Level.SIMULATED, source=Stated(low=1.5, high=2.5, unit="ratio", bound="range"),
        measured=Interval(low=value - 0.1, value=value, high=value + 0.1, n=30, unit="ratio"), reason="part of the range",
        repro="bench", machine="cpu", at="2026-07-02T00:00:00Z",
    )  # fmt: skip


def timed(what: str, budget: float | None, work: Callable[[], object]) -> float:
    """Run ``work`` once and print what it took beside its budget."""
    start = time.perf_counter()
    result = work()
    took = time.perf_counter() - start
    fits = "" if budget is None else f"  budget {budget:g} s  {'ok' if took <= budget else 'OVER'}"
    print(f"{what:<34}{took:8.2f} s{fits}" + (f"  {result}" if isinstance(result, str) else ""), flush=True)
    return took


def change_one(base: Base) -> None:
    """What a person does: another number in one claim."""
    path = base.root / "claims/s7.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("high = 2.5", "high = 2.6", 1), encoding="utf-8")


def publish_changed(base: Base) -> str:
    """Publish, and say which pages were touched."""
    pages = [c.path for c in publish(base).changes if c.path.endswith("index.md")]
    return f"pages touched: {', '.join(pages)}"


def search_p95(base: Base) -> str:
    """95th percentile of 200 searches over a fresh index."""
    rng = random.Random(1)
    took = []
    for _ in range(200):
        words = rng.choice(
            [
                rng.choice(WORDS),
                " ".join(rng.sample(WORDS, 2)),
                f"s{rng.randrange(100)}/c{rng.randrange(100)}",
            ]
        )
        start = time.perf_counter()
        search(base, words)
        took.append(time.perf_counter() - start)
    p95 = statistics.quantiles(took, n=20)[18]
    return f"p50 {1000 * statistics.median(took):.1f} ms, p95 {1000 * p95:.1f} ms ({'ok' if p95 <= BUDGETS_S['search p95'] else 'OVER'}, budget 50 ms)"


def main() -> None:
    """Build the base and time each step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--site", action="store_true", help="build the site too, twice")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kb-bench-"))
    try:
        base = make_base(folder / "base")
        print(f"{NUM_PAGES:,} pages, {NUM_CLAIMS:,} claims")
        timed("publish, first", None, lambda: f"{len(publish(base).changes):,} files")
        timed(
            "publish, nothing changed",
            BUDGETS_S["unchanged"],
            lambda: f"{len(publish(Base(base.root)).changes)} files",
        )
        timed(
            "publish --check, nothing changed",
            BUDGETS_S["unchanged"],
            lambda: f"{len(make_plan(Base(base.root)).changes)} files",
        )
        change_one(base)
        timed("publish, one claim changed", BUDGETS_S["one claim"], lambda: publish_changed(Base(base.root)))
        timed("search, index built", None, lambda: f"{len(search(base, '显存', limit=200))} hits")
        timed("search, 200 questions", None, lambda: search_p95(base))
        if asked.site:
            build_twice(base, folder)
    finally:
        shutil.rmtree(folder)


def build_twice(base: Base, folder: Path) -> None:
    """Build the site twice and compare every byte."""
    from kb.publish.site import build_site

    trees = []
    for name in ("one", "two"):
        timed(
            f"site build, {name}",
            BUDGETS_S["site"],
            lambda name=name: json.dumps({"files": build_site(base, folder / name).files}),
        )
        trees.append(
            {p.relative_to(folder / name): p.read_bytes() for p in (folder / name).rglob("*") if p.is_file()}
        )
    print("two builds byte-identical:", trees[0] == trees[1])


if __name__ == "__main__":
    main()
