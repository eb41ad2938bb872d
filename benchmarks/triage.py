"""Time and memory of triage over many items, and what a run costs when only some of them are new.

    python benchmarks/triage.py [--items 100000] [--new 100 1000]

Items are made from a word list by arithmetic, so that two runs see the same; about one in four fits a topic.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from kb.model import DateStamp, Item
from kb.store import Base
from kb.triage.run import run_triage

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "shared/research-kb"
ON = "KV cache|speculative decoding|prefill|scheduler|vLLM|SGLang|paged attention|TTFT|disaggregation|GraphRAG|tool calling|quantisation".split(
    "|"
)
OFF = "galaxies|enzymes|turbines|sonnets|glaciers|markets|proteins|bridges|orchards|tariffs|violins|harbours".split(
    "|"
)
VERBS = (
    "measures|derives|compares|presents|revisits|bounds|orders|extends|questions|models|maps|explains".split(
        "|"
    )
)
FILL = (
    "the|of|a|under|with|for|across|between|large|small|early|late|open|closed|random|fixed|slow|fast|wide|narrow|first|second|"
    "method|result|sample|region|group|layer|value|curve|table|field|model|trace|limit|share|phase|shape|level|range|order|cost"
).split("|")


def pick(words: list[str], seed: int) -> str:
    return words[(seed * 2654435761 >> 7) % len(words)]


def make(number: int) -> Item:
    on = number % 4 == 0
    words = ON if on else OFF
    title = f"{pick(words, number)} {pick(VERBS, number + 1)} {pick(words, number + 2)} {number}"
    parts = [pick(FILL, number * 37 + i * i) for i in range(48)]
    figures = f"On one H100 with Llama-3.1-8B it is {1 + number % 30 / 10}x faster than vLLM 0.{number % 20} and P95 falls by {number % 60}%."
    body = f"{' '.join(parts)} {pick(words, number + 3)} {pick(words, number + 4)}. {figures if number % 3 else 'Nothing was measured.'}"
    day = DateStamp(at=f"2026-{1 + number % 6:02}-{1 + number % 28:02}", field="published")
    seen = f"2026-07-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    return Item(
        id=f"arxiv:{2600 + number // 100000}.{number % 100000:05}"
        if number % 2
        else f"url:site{number % 97}.example/p/{number}",
        source=f"feed-{number % 7}",
        url=f"https://site{number % 97}.example/p/{number}",
        title=title,
        announced=day,
        first_seen=DateStamp(at=seen, field="kb"),
        summary=body[:500],
        fetched_at=seen,
    )


def fill(root: Path, start: int, stop: int) -> None:
    Base(root).append_items(make(number) for number in range(start, stop))


def timed(root: Path) -> dict[str, Any]:
    """Run triage in a process of its own: seconds, peak MiB, its report."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from benchmarks.triage import child; child({str(root)!r})"
    ran = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def child(root: str) -> None:
    start = time.perf_counter()
    report = run_triage(Base(Path(root)))
    seconds = time.perf_counter() - start
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    # ru_maxrss of children is that of the largest; two of them share the work on the two cores this is meant for
    peak = (used[0].ru_maxrss + 2 * used[1].ru_maxrss) / 1024
    cpu = sum(one.ru_utime + one.ru_stime for one in used)
    found = {"seconds": seconds, "cpu": cpu, "peak_mib": peak}
    print(json.dumps({**found, "assessed": report.assessed, "drafts": len(report.drafts)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--new", type=int, nargs="*", default=[0, 100, 1_000])
    chosen = parser.parse_args()
    os.environ["KB_NOW"] = "2026-07-02T03:05:00Z"
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "base"
        root.mkdir()
        for folder in ("topics", "rules"):
            shutil.copytree(SHIPPED / folder, root / folder)
        shutil.copy(SHIPPED / "kb.toml", root / "kb.toml")
        fill(root, 0, chosen.items)
        print(f"{'new':>8} {'seconds':>8} {'CPU s':>7} {'ms each':>8} {'peak MiB':>9} {'drafts':>7}")
        top = chosen.items
        for new in (chosen.items, *chosen.new):
            if new != chosen.items:
                fill(root, top, top + new)
                top += new
            found = timed(root)
            assert found["assessed"] == new, found
            each = 1000 * found["seconds"] / new if new else 0
            print(
                f"{new:>8} {found['seconds']:>8.2f} {found['cpu']:>7.2f} {each:>8.2f} {found['peak_mib']:>9.0f} {found['drafts']:>7}",
                flush=True,
            )


if __name__ == "__main__":
    main()
