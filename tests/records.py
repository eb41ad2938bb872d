"""Small valid records for tests: name what matters, the rest is filled in."""

from kb.model import Assessment, Claim, DateStamp, Environment, Item, Measurement, RuleFired, Text

MOMENT = "2026-07-02T03:05:00Z"


def item(name="arxiv:2606.06302", version="", **rest):
    values = {
        "source": "arxiv-serving",
        "title": "Paged KV caches under eviction",
        "first_seen": DateStamp(at=MOMENT, field="fetched"),
        "fetched_at": MOMENT,
    }
    return Item(id=name, version=version, **{**values, **rest})


def assessment(name="arxiv:2606.06302", **rest):
    values = {
        "by": "rules",
        "decision": "keep",
        "stars": 4,
        "topics": ("inference",),
        "rules": (RuleFired(rule="on-topic", weight=1.0, evidence=("KV cache",)),),
        "reason": "speaks of serving",
        "at": MOMENT,
    }
    return Assessment(item=name, **{**values, **rest})


def claim(name="toy/speed-up", **rest):
    values = {
        "item": "arxiv:2606.06302",
        "statement": Text(zh="快两倍", en="twice as fast"),
        "metric": "speed_up",
        "unit": "ratio",
        "low": 1.9,
        "high": 2.1,
        "baseline": "no paging",
        "provenance": "primary",
        "topics": ("inference",),
    }
    return Claim(id=name, **{**values, **rest})


def environment(**rest):
    return Environment(**{"machine": "cpu", "cpu": "a processor", "num_cores": 2, "python": "3.11", **rest})


def measurement(name="m1", **rest):
    values = {
        "repro": "toy",
        "case": {"page_tokens": 16},
        "metric": "speed_up",
        "unit": "ratio",
        "samples": (2.0, 2.1),
        "seed": 0,
        "rule": "r",
        "code": "c",
        "inputs": "i",
        "level": "derived",
        "env": "e",
        "at": MOMENT,
    }
    return Measurement(id=name, **{**values, **rest})


def draft_text(*entries, curator="jay", date="2026-06-10", body=None):
    """A draft with flow-style entries ``(n, item)`` and one section each."""
    listed = "\n".join(f'  - {{n: "{n}", item: "{name}", decision: keep, stars: 4}}' for n, name in entries)
    sections = body or "".join(f"## {n} · about {name}\n\nwhat it says\n\n" for n, name in entries)
    front = f'kb: draft/1\ncurator: "{curator}"\ndate: "{date}"\nentries:\n{listed}\ncandidates: []\n'
    return f"---\n{front}---\n\n# Brief\n\n{sections}"


def put_draft(base, draft, text, stage="inbox"):
    from kb.draft import draft_file

    path = draft_file(base, draft, stage)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
