"""``make base``: bring the machine-written parts of the shipped base up to date, in place, offline.

Everything is idempotent: where nothing changed no byte changes, and what people wrote into pages stays.
"""

from __future__ import annotations

from pipeline import ROOT, SHIPPED, SINCE, kb, replay


def main() -> None:
    """Ingest the replayed sources, run the reproductions that need no GPU, publish."""
    with replay(ROOT / "build/base-settings") as env:
        kb(SHIPPED, env, "ingest", "--since", SINCE)
        # 4: some need a GPU, weights or an engine; their claims are blocked, and say so
        kb(SHIPPED, env, "repro", "--all", fine=(0, 4))
        kb(SHIPPED, env, "publish", lines=5)
        kb(SHIPPED, env, "status")


if __name__ == "__main__":
    main()
