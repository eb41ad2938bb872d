"""What tests of triage share: items made of a few words, a base with the shipped rules and topics."""

import shutil
from pathlib import Path

import pytest

from kb.model import DateStamp, Item
from kb.store import Base

SHIPPED = Path(__file__).resolve().parents[2] / "shared/research-kb"
MOMENT = "2026-07-02T03:05:00Z"


def make_item(name="arxiv:2607.00001", title="A paper", summary="", **rest):
    url = rest.pop("url", None)
    if url is None:
        kind, _, tail = name.partition(":")
        url = f"https://arxiv.org/abs/{tail}" if kind == "arxiv" else f"https://{tail}"
    values = {
        "source": "feed",
        "announced": DateStamp(at="2026-07-01", field="published"),
        "first_seen": DateStamp(at=MOMENT, field="kb"),
        "fetched_at": MOMENT,
        **rest,
    }
    return Item(id=name, url=url, title=title, summary=summary[:500], **values)


@pytest.fixture
def shelf(tmp_path):
    """An empty base with the rules, topics and settings that are shipped, in English."""
    root = tmp_path / "shelf"
    root.mkdir()
    for folder in ("topics", "rules"):
        shutil.copytree(SHIPPED / folder, root / folder)
    settings = (SHIPPED / "kb.toml").read_text(encoding="utf-8").replace('language = "zh"', 'language = "en"')
    (root / "kb.toml").write_text(settings, encoding="utf-8")
    return Base(root)


GOOD = {
    "title": "Paged KV cache eviction for LLM serving",
    "summary": "We evict half of the KV cache in vLLM 0.19 on one H100 with Llama-3.1-8B at 32 concurrent requests. "
    "Throughput rises 1.8x over the full cache, and P95 TTFT falls by 31% against the same baseline. Code is public.",
}
BAD = {
    "title": "The secret of lightning-fast AI",
    "summary": "Unlock a game-changing trick! Subscribe to my newsletter, follow me for more and book a free call!",
}


def tree(root):
    """Every file of a base but its cache, with its bytes."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".kb" not in path.relative_to(root).parts
    }
