"""Two of the twenty command-level cases: another run at the same time, and a run that was killed."""

import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kb.store import Base
from tests.ingest.atom import ATOM, ENTRY

ROOT = Path(__file__).resolve().parents[2]


def seconds_of(call, code):
    """Wall seconds of a call that ends with this code."""
    started = time.monotonic()
    assert call().code == code
    return time.monotonic() - started


def program(*args, **extra):
    """`kb` in a process of its own, in the environment of this test."""
    return subprocess.Popen(
        [sys.executable, "-c", "from kb.cli import main; main()", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        **extra,
    )


def test_h20_of_two_runs_one_works_and_the_other_says_who_does_P139_P142(kb, web, follow, base):
    gate = threading.Event()

    def slow(_, __):
        gate.wait(20)
        return 200, {}, ATOM.format(ENTRY.format("https://example.org/a", "A")).encode()

    web.answers["/feed"] = slow
    follow("blog", kind="feed", url=f"{web.url}/feed")
    first = program("-C", str(base.root), "ingest", "--no-triage")
    try:
        deadline = time.monotonic() + 20
        while not web.asked and time.monotonic() < deadline:
            time.sleep(0.02)
        second = program("-C", str(base.root), "ingest", "--no-triage")
        _, err = second.communicate(timeout=20)
        waits = [seconds_of(lambda: kb("ingest", "--no-triage"), 6) for _ in range(3)]
    finally:
        gate.set()
    first.communicate(timeout=20)
    assert first.returncode == 0
    assert second.returncode == 6
    assert str(first.pid) in err
    assert re.search(r"since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", err)
    assert min(waits) < 2, "where the program is loaded already; starting Python takes what the machine gives"
    assert not list(base.root.rglob("index.lock"))
    assert len(list(Base(base.root).items())) == 1


KILLED = """
import os, signal, sys
from kb.ingest.known import Known
from kb.store import Base
from kb.texts import text_of
when = sys.argv[2]
if when == "after-append":
    inner = Base.append_items
    def append_items(self, items):
        inner(self, items)
        os.kill(os.getpid(), signal.SIGKILL)
    Base.append_items = append_items
else:
    def append_items(self, items):
        path = self.root / "items/2026-07.jsonl"
        path.parent.mkdir(exist_ok=True)
        import json
        text = "".join(json.dumps(i.to_json(), ensure_ascii=False, separators=(",", ":")) + chr(10) for i in items)
        path.write_bytes(text.encode()[: len(text) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    Base.append_items = append_items
from kb.cli.root import run
sys.exit(run(["-C", sys.argv[1], "ingest"]))
"""


@pytest.mark.parametrize("when", ["after-append", "in-the-middle-of-the-append"])
def test_h15_killed_between_items_and_drafts_a_rerun_completes_the_same_bytes_P099_P140_P141(
    kb, web, follow, base, snapshot, when
):
    entries = "".join(ENTRY.format(f"https://example.org/{n}", f"KV cache page {n}") for n in range(5))
    body = ATOM.format(entries).encode()
    web.answers["/feed"] = lambda _, h: (
        (304, {}, b"") if h.get("if-none-match") == '"x"' else (200, {"etag": '"x"'}, body)
    )
    follow("blog", kind="feed", url=f"{web.url}/feed")
    begun = snapshot()
    assert kb("ingest").code == 0
    undisturbed = snapshot()
    for name in undisturbed.keys() - begun.keys():
        (base.root / name).unlink()
    import shutil

    shutil.rmtree(base.cache)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(base.root), when], cwd=ROOT, capture_output=True, check=False
    )
    assert killed.returncode == -9, killed.stderr
    assert kb("ingest").code == 0
    assert snapshot() == undisturbed
    again = kb("ingest", "--json")
    assert (again.code, json.loads(again.out)["items"]["new"]) == (0, [])
    assert snapshot() == undisturbed
