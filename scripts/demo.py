"""``make demo``: a draft and the sources, triage, a reproduction and a published page, offline, in build/demo.

The copy starts without anything a machine wrote, so that every file it ends with was made by the commands below.
"""

from __future__ import annotations

import time

from pipeline import ROOT, SINCE, copy_without_machine_parts, kb, replay

TARGET = ROOT / "build/demo/research-kb"
DRAFT = ROOT / "docs/examples/2026-06-12-kv-notes.txt"
PAGE = TARGET / "published/inference/kvcache/index.md"


def main() -> None:
    """Run the pipeline and say where to look."""
    start = time.monotonic()
    copy_without_machine_parts(TARGET)
    print(f"a scratch copy of the shipped base: {TARGET.relative_to(ROOT)}")
    with replay(TARGET.parent / "settings") as env:
        kb(TARGET, env, "ingest", "--file", str(DRAFT.relative_to(ROOT)))
        kb(TARGET, env, "ingest", "--since", SINCE)
        kb(TARGET, env, "repro", "paged-eviction")
        kb(TARGET, env, "publish")
        kb(TARGET, env, "status")
        print("\nwhat our own numbers say of what was published:")
        print(kb(TARGET, env, "list", "verdicts", "--where", "verdict <> 'untested'", quiet=True))
    if not PAGE.is_file():
        raise SystemExit(f"no page at {PAGE}")
    print(f"the page: {PAGE.relative_to(ROOT)}")
    print(
        f"took {time.monotonic() - start:.0f} s; look on with: .venv/bin/kb -C {TARGET.relative_to(ROOT)} show eai/evict-14400"
    )


if __name__ == "__main__":
    main()
