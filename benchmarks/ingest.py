"""Ingest against its floor: the same bytes downloaded with httpx and parsed with the same libraries, and nothing else.

10,000 arXiv entries in pages of 2,000 (pacing off) and 200 feeds of 20 entries, all from loopback, from a server in its own
process. Kept against the floor: wall time of a whole command at most 1.5 times, a second run where everything is answered
304 at most 1.5 s, peak memory at most 300 MB, cost per new item flat within 20 % from an empty base to 100,000 items.
Floor and `kb` are run alternately, because a shared machine is faster in one minute than in the next.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

ROOT = Path(__file__).resolve().parent.parent
PAPERS, PAGE, FEEDS, POSTS = 10_000, 2_000, 200, 20
LIMITS = {"ratio": 1.5, "unchanged_s": 1.5, "memory_mb": 300, "flat": 0.2}
WORDS = "paged cache prefill decode latency throughput batch scheduler kernel memory token draft verify router".split()

SERVER = "serve"
FLOOR = f"""
import sys, time
import httpx, feedparser
from arxiv import _feed
place = sys.argv[1]
count = 0
with httpx.Client() as client:
    for start in range(0, {PAPERS}, {PAGE}):
        count += len(_feed.parse(client.get(f"{{place}}/api?start={{start}}&max_results={PAGE}").content).results)
    for n in range({FEEDS}):
        count += len(feedparser.parse(client.get(f"{{place}}/feed/{{n}}").content).entries)
print(count)
"""
KB = "import sys; from kb.cli.root import run; sys.exit(run(sys.argv[1:]))"


def sentences(seed: str, count: int) -> str:
    """Text that is the same on every machine."""
    chance = random.Random(seed)
    return " ".join(" ".join(chance.choices(WORDS, k=12)).capitalize() + "." for _ in range(count))


def api(start: int, size: int, shift: int) -> bytes:
    """A page of the arXiv API; ``shift`` renames the papers, for the test of flat cost."""
    entries = []
    for n in range(start, min(start + size, PAPERS)):
        number = f"{2601 + (n + shift) // 90_000}.{(n + shift) % 90_000 + 10_000:05}"
        entries.append(
            f"<entry><id>http://arxiv.org/abs/{number}v1</id><title>{sentences(f't{n}{shift}', 1)}</title>"
            f"<updated>2026-06-{10 + n % 20:02}T00:00:00Z</updated><published>2026-06-{10 + n % 20:02}T00:00:00Z</published>"
            f"<summary>{sentences(f's{n}', 14)}</summary><author><name>A. Author</name></author><author><name>B. Writer</name></author>"
            f'<arxiv:primary_category term="cs.DC"/><category term="cs.DC"/><link href="https://arxiv.org/abs/{number}v1"/></entry>'
        )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom" '
        'xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom">'
        f"<opensearch:totalResults>{PAPERS}</opensearch:totalResults><opensearch:startIndex>{start}</opensearch:startIndex>"
        f"{''.join(entries)}</feed>"
    ).encode()


def feed(number: int) -> bytes:
    """A feed with 20 posts."""
    items = "".join(
        f"<item><title>{sentences(f'f{number}.{n}', 1)}</title><link>https://blog{number}.example.org/{n}</link>"
        f"<guid>https://blog{number}.example.org/{n}</guid><pubDate>Wed, {10 + n % 19:02} Jun 2026 08:00:00 GMT</pubDate>"
        f"<description>{sentences(f'd{number}.{n}', 12)}</description></item>"
        for n in range(POSTS)
    )
    return f'<?xml version="1.0"?><rss version="2.0"><channel><title>Blog {number}</title>{items}</channel></rss>'.encode()


def serve(shift: int) -> None:
    """Serve everything from memory; prints the address."""
    bodies: dict[str, tuple[bytes, str]] = {}

    def body_of(path: str) -> tuple[bytes, str]:
        parts = urlsplit(path)
        query = parse_qs(parts.query)
        key = f"{parts.path}?{query.get('start', ['0'])[0]}"
        if key not in bodies:
            start, size = int(query.get("start", ["0"])[0]), int(query.get("max_results", [str(PAGE)])[0])
            data = (
                api(start, size, shift) if parts.path == "/api" else feed(int(parts.path.rpartition("/")[2]))
            )
            bodies[key] = data, f'"{hashlib.sha256(data).hexdigest()[:16]}"'
        return bodies[key]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            data, etag = body_of(self.path)
            is_same = self.headers.get("if-none-match") == etag
            self.send_response(304 if is_same else 200)
            self.send_header("ETag", etag)
            self.send_header("Content-Length", "0" if is_same else str(len(data)))
            self.end_headers()
            if not is_same:
                self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    for start in range(0, PAPERS, PAGE):
        body_of(f"/api?start={start}&max_results={PAGE}")
    for number in range(FEEDS):
        body_of(f"/feed/{number}")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


def timed(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Wall seconds and peak megabytes of a command that must end with 0."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    out, err = process.communicate(timeout=600)
    seconds = time.perf_counter() - started
    if process.returncode:
        sys.exit(f"{command[:4]} ended with {process.returncode}\n{out[-2000:]}\n{err[-2000:]}")
    return seconds, peak_of(err)


def peak_of(err: str) -> float:
    """Peak memory that the measured process wrote on stderr."""
    found = [line for line in err.splitlines() if line.startswith("peak ")]
    return float(found[-1].split()[1]) / 1024 if found else 0.0


PEAK = "import resource, sys, atexit; atexit.register(lambda: print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr))\n"


def new_base(folder: Path, place: str, *, feeds: bool = True) -> Path:
    """A base that follows everything the server has."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "sources").mkdir(parents=True)
    (folder / "kb.toml").write_text('zone = "UTC"\n', encoding="utf-8")
    (folder / "sources/arxiv.toml").write_text(
        f'kind = "arxiv"\nurl = "{place}/api"\nquery = "cat:cs.DC"\npage = {PAGE}\nwhy = "a benchmark"\n',
        encoding="utf-8",
    )
    for number in range(FEEDS if feeds else 0):
        (folder / f"sources/feed-{number:03}.toml").write_text(
            f'kind = "feed"\nurl = "{place}/feed/{number}"\nwhy = "a benchmark"\n', encoding="utf-8"
        )
    return folder


def ingest(base: Path, environment: dict[str, str]) -> tuple[float, float]:
    """One `kb ingest` without triage."""
    command = [
        sys.executable,
        "-c",
        PEAK + KB,
        "-C",
        str(base),
        "ingest",
        "--since",
        "2026-06-01",
        "--no-triage",
    ]
    return timed(command, environment)


def fill(base: Path, count: int) -> None:
    """Give a base ``count`` items of another source."""
    (base / "items").mkdir(exist_ok=True)
    with (base / "items/2026-05.jsonl").open("w", encoding="utf-8") as out:
        for n in range(count):
            item = {"id": f"url:old.example.org/{n}", "version": "", "source": "old", "url": f"https://old.example.org/{n}",
                    "aliases": [], "title": sentences(f"o{n % 500}", 1), "authors": [], "submitted": None, "updated": None,
                    "announced": {"at": "2026-05-01", "field": "published", "zone": "", "assumed": False},
                    "first_seen": {"at": "2026-05-02T00:00:00Z", "field": "first_seen", "zone": "", "assumed": False},
                    "summary": sentences(f"p{n % 500}", 5)[:500], "content_sha256": f"{n:064x}",
                    "fetched_at": "2026-05-02T00:00:00Z", "losses": {}, "notices": [], "links": []}  # fmt: skip
            out.write(json.dumps(item, separators=(",", ":")) + "\n")


def main() -> None:
    """Measure, print, and end with 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", nargs="?", choices=[SERVER])
    parser.add_argument("--shift", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.command == SERVER:
        serve(options.shift)
        return
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen([sys.executable, __file__, SERVER], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            result = measure(Path(folder), server.stdout.readline().strip(), options.rounds)
        finally:
            server.terminate()
    print(json.dumps(result, indent=2))
    missed = [
        name
        for name, value in (("ratio", result["ratio"]), ("unchanged_s", result["unchanged_s"]), ("memory_mb", result["memory_mb"]),
                            ("flat", abs(result["per_item_100k"] / result["per_item_empty"] - 1)))
        if value > LIMITS[name]
    ]  # fmt: skip
    print("missed: " + ", ".join(missed) if missed else "all bars met")
    sys.exit(1 if missed else 0)


def measure(folder: Path, place: str, rounds: int) -> dict[str, float]:
    """Floor and `kb` alternately; medians of the rounds, the ratio round by round."""
    environment = {
        **os.environ, "KB_NOW": "2026-07-02T03:05:00Z", "KB_ALLOW_PRIVATE": urlsplit(place).netloc, "KB_CONFIG_DIR": str(folder),
        "XDG_RUNTIME_DIR": str(folder),
    }  # fmt: skip
    floors, ours, unchanged, peaks, flats = [], [], [], [], []
    for _ in range(rounds):
        floors.append(timed([sys.executable, "-c", FLOOR, place], environment)[0])
        base = new_base(folder / "base", place)
        seconds, peak = ingest(base, environment)
        ours.append(seconds)
        peaks.append(peak)
        unchanged.append(ingest(base, environment)[0])
        small = ingest(new_base(folder / "small", place, feeds=False), environment)[0]
        large = new_base(folder / "large", place, feeds=False)
        fill(large, 100_000)
        timed(
            [
                sys.executable,
                "-c",
                f"from kb.ingest.known import Known; from kb.store import Base; from pathlib import Path; Known(Base(Path({str(large)!r}))).close()",
            ],
            environment,
        )
        full, peak = ingest(large, environment)
        peaks.append(peak)
        flats.append((small, full))
    return {
        "floor_s": round(statistics.median(floors), 2),
        "kb_s": round(statistics.median(ours), 2),
        "ratio": round(statistics.median(o / f for o, f in zip(ours, floors, strict=True)), 3),
        "unchanged_s": round(statistics.median(unchanged), 2),
        "memory_mb": round(max(peaks), 1),
        "per_item_empty": round(statistics.median(s for s, _ in flats) / PAPERS * 1e6, 1),
        "per_item_100k": round(statistics.median(f for _, f in flats) / PAPERS * 1e6, 1),
    }


if __name__ == "__main__":
    main()
