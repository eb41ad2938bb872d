"""``make demo``: a draft and the sources, triage, a reproduction and a published page, offline.

    python scripts/demo.py [FOLDER]    in build/demo, or another folder

The copy starts without anything a machine wrote, so that every file it ends with was made by the commands below.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pipeline import ROOT, SINCE, copy_without_machine_parts, kb, replay

DRAFT = ROOT / "docs/examples/2026-06-12-kv-notes.txt"
PAGE = "published/inference/kvcache/index.md"


def main() -> None:
    """Run the pipeline and say where to look."""
    start = time.monotonic()
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/demo").resolve()
    target = folder / "research-kb"
    shown = target.relative_to(ROOT) if target.is_relative_to(ROOT) else target
    copy_without_machine_parts(target)
    print(f"a scratch copy of the shipped base: {shown}")
    with replay(folder / "settings") as env:
        kb(target, env, "ingest", "--file", str(DRAFT.relative_to(ROOT)))
        kb(target, env, "ingest", "--since", SINCE)
        kb(target, env, "repro", "paged-eviction")
        kb(target, env, "publish", lines=3)
        kb(target, env, "status")
        print("\nwhat our own numbers say of what was published:")
        print(kb(target, env, "list", "verdicts", "--where", "verdict <> 'untested'", quiet=True))
    if not (target / PAGE).is_file():
        raise SystemExit(f"no page at {target / PAGE}")
    print(f"the page: {shown / PAGE}")
    took = time.monotonic() - start
    print(f"took {took:.0f} s; look on with: .venv/bin/kb -C {shown} show eai/evict-14400")


if __name__ == "__main__":
    main()
