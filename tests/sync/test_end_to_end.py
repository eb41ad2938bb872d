"""From a draft to the other clone: ingest, git mv to review, edit, move to published, repro, publish, sync, pull."""

import json
from pathlib import Path

from tests.sync.world import World

DRAFT = """# Inference systems brief

curator: jay
date: 2026-07-02

## 1. Paged attention revisited ⭐⭐⭐⭐

arXiv: 2606.00001v1

Evicting 90% of the tokens frees less than a fifth of the pages.
"""
SHIPPED = Path(__file__).parents[2] / "shared/research-kb"
"""The base of this repository: claims that are checked within a second, and a topic."""


def status(world: World, at) -> dict:
    """What must agree between two clones."""
    found = json.loads(world.kb("status", "--json", at=at).stdout)
    return {key: found[key] for key in ("stages", "items", "pages", "claims", "verdicts", "held")}


def test_a_draft_becomes_a_page_in_the_other_clone(world: World):
    base, other = world.here / "kb", world.there / "kb"
    world.kb("init", str(base), "--lang", "en")
    for part in ("claims/h2o.toml", "topics/inference/kvcache.toml"):
        world.write(f"kb/{part}", (SHIPPED / part).read_bytes())
    world.sync(at=base)
    source = world.root / "brief.md"
    source.write_text(DRAFT, encoding="utf-8")
    world.kb(
        "ingest",
        "--file",
        str(source),
        "--curator",
        "jay",
        "--date",
        "2026-07-02",
        "--slug",
        "brief",
        at=base,
    )
    [draft] = (base / "inbox/jay").glob("2026-07-02-*.md")
    world.sync(at=base)
    (base / "review/jay").mkdir(parents=True, exist_ok=True)
    world.git("add", "kb/inbox")
    for path in sorted((base / "inbox/jay").glob("2026-07-02-*")):
        world.git("mv", str(path), str(base / "review/jay" / path.name))
    reviewed = base / "review/jay" / draft.name
    reviewed.write_text(reviewed.read_text(encoding="utf-8") + "\nChecked by a reviewer.\n", encoding="utf-8")
    world.kb("move", f"jay/{draft.stem}", "--to", "published", "--reason", "right", at=base)
    world.kb("repro", "h2o", at=base)
    world.kb("publish", at=base)
    world.sync(at=base)
    world.pull()
    assert status(world, other) == status(world, base)
    assert status(world, other)["stages"]["published"] == 1
    agreed = status(world, other)
    assert agreed["verdicts"]["untested"] < agreed["claims"], "the reproduction's verdicts travelled"
    page = (other / "published/inference/kvcache/index.md").read_text(encoding="utf-8")
    assert "h2o/" in page
    assert "Checked by a reviewer." in (other / f"published/drafts/{draft.name}").read_text(encoding="utf-8")
    assert not list((other / "inbox").rglob("2026-07-02-*"))
    assert world.sync(at=base)["plan"] == []
