"""``make base``: bring the machine-written parts of the shipped base up to date, in place, offline.

Everything is idempotent: where nothing changed no byte changes, and what people wrote into pages stays.
"""

from __future__ import annotations

from pipeline import ROOT, SHIPPED, SINCE, kb, replay


def main() -> None:
    """Ingest the replayed sources, run the reproductions that need no GPU, publish."""
    with replay(ROOT / "build/base-settings") as env:
        kb(SHIPPED, env, "ingest", "--since", SINCE)
        kb(SHIPPED, env, "repro", "--all")
        kb(SHIPPED, env, "publish")
        kb(SHIPPED, env, "status")


if __name__ == "__main__":
    main()
