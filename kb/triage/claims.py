"""Claims from a source's own bytes: proposed with passage and offset, written only where the passage is really there."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kb.errors import BadInput, NothingMatches, WrongUse
from kb.files import read_bytes, sha256
from kb.model import Claim, Item, Text
from kb.store import Base
from kb.triage.quantities import Quantity, extract
from kb.triage.quantities.text import clause_end, clause_start
from kb.vocab import METRICS, UNITS

MAX_BODY_BYTES = 16 << 20
"""Largest fetched body that is read."""
MAX_QUOTE = 300
"""Characters of a quote, as in the record."""
TO_VOCABULARY: dict[str, tuple[str, float]] = {
    "bits": ("bit", 1.0), "points": ("score", 1.0), "bytes/s": ("bytes/s", 1.0), "months": ("s", 30.44 * 86400),
}  # fmt: skip
"""Unit of an extracted figure → unit of the vocabulary and factor."""
METRIC_WORDS: tuple[tuple[str, str], ...] = (
    ("ttft", r"TTFT|first[- ]token|首字|首 ?token"), ("tpot", r"TPOT|per output token|每 ?token 时间"), ("itl", r"\bITL\b|inter-token"),
    ("goodput", r"goodput|有效吞吐"), ("hit_rate", r"hit rate|命中率"), ("acceptance_rate", r"acceptance|接受率"),
    ("load_time", r"load(?:ing|s)? |加载|cold start|冷启动"), ("freed_fraction", r"freed?\b|reclaim|归还|释放|收回"),
    ("speed_up", r"faster|speed-?ups?|加速|提速|快"), ("slowdown", r"slower|slowdown|变慢|膨胀"), ("throughput", r"throughput|吞吐|tok/s|tokens per second"),
    ("e2e_latency", r"latency|延迟|时延"), ("cost", r"cost|\$|成本|美元"), ("kv_bytes", r"KV[ -]?cache|KV 缓存"), ("memory_bytes", r"memory|显存|内存"),
    ("bandwidth", r"bandwidth|带宽"), ("accuracy", r"accuracy|quality|精度|质量|准确率"),
)  # fmt: skip
"""Metric → words that name it, tried in this order."""


@dataclass(frozen=True)
class Proposal:
    """A claim that a text seems to make."""

    quote: str
    """Shortest passage that carries the figure and says what it is of."""
    offset: int
    """Where it begins in the fetched bytes."""
    length: int
    """Bytes."""
    body: str
    """Digest of those bytes."""
    quantity: Quantity
    metric: str
    """Key of `kb.vocab.METRICS`, empty where no word names one."""
    conditions: tuple[str, ...]
    """Figures of the same sentence that set the scene."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON types."""
        unit, factor = vocabulary_unit(self.quantity.unit)
        return {
            "quote": self.quote, "offset": self.offset, "length": self.length, "body": self.body, "figure": self.quantity.quote,
            "low": self.quantity.low * factor, "high": self.quantity.high * factor, "unit": unit, "bound": self.quantity.bound,
            "baseline": self.quantity.baseline, "metric": self.metric, "conditions": list(self.conditions), "sentence": self.quantity.sentence,
        }  # fmt: skip


def vocabulary_unit(unit: str) -> tuple[str, float]:
    """A unit of the extractor as the vocabulary spells it, with its factor; ``count`` where it knows none."""
    name, factor = TO_VOCABULARY.get(unit, (unit, 1.0))
    return (name, factor) if name in UNITS else ("count", 1.0)


def propose(body: bytes) -> list[Proposal]:
    """Claims that fetched bytes seem to make, in order; markup is blanked, so that offsets stay true.

    Args:
        body: Bytes as fetched, UTF-8 text, Markdown or HTML.
    """
    text = body.decode("utf-8", "replace")
    readable = _without_markup(text)
    figures = extract(readable)
    found = []
    for quantity in figures:
        if quantity.role != "claim":
            continue
        start, end = _passage(readable, quantity)
        scene = [q.quote for q in figures if q.role == "condition" and q.sentence == quantity.sentence]
        before = len(text[:start].encode())
        quote = text[start:end]
        metric = metric_of(f"{quantity.about} {quantity.quote} {readable[quantity.end : end]}")
        found.append(
            Proposal(quote, before, len(quote.encode()), sha256(body), quantity, metric, tuple(scene))
        )
    return found


def _without_markup(text: str) -> str:
    """Tags, scripts and styles as blanks of the same length."""
    if not re.search(r"<(?:html|body|p|div|h1)\b", text[:4096], re.IGNORECASE):
        return text
    blank = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->|<[^<>]*>", re.IGNORECASE | re.DOTALL)
    return blank.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def _passage(text: str, quantity: Quantity) -> tuple[int, int]:
    """The clause around a figure, or as much of it as a quote may hold."""
    line = text.rfind("\n", 0, quantity.start) + 1
    start = line + clause_start(text[line : quantity.start], quantity.start - line)
    end = clause_end(text, quantity.end)
    end = min(end, text.find("\n", quantity.end) if "\n" in text[quantity.end : end] else end)
    while start < quantity.start and text[start].isspace():
        start += 1
    while end > quantity.end and text[end - 1] in " .。\t":
        end -= 1
    if end - start > MAX_QUOTE:
        start, end = max(start, quantity.start - 120), min(end, quantity.end + 60)
    return start, end


def metric_of(text: str) -> str:
    """The metric whose words a text holds, empty where it holds none."""
    return next((name for name, words in METRIC_WORDS if re.search(words, text, re.IGNORECASE)), "")


def find_quote(body: bytes, quote: str) -> tuple[int, int] | None:
    """Offset and length of a quote in fetched bytes; white space and HTML entities may differ, nothing else.

    Returns:
        None where the bytes do not hold it.
    """
    if not quote.strip():
        return None
    for spelling in (quote, html.escape(quote, quote=False), html.escape(quote)):
        words = [re.escape(word.encode()) for word in spelling.split()]
        if found := re.search(rb"(?:\s|&nbsp;|\xc2\xa0)+".join(words), body):
            return found.start(), len(found.group())
    return None


def bodies_with(base: Base, quote: str) -> Iterator[tuple[str, bytes]]:
    """Fetched bodies of this base that hold a quote, by digest; a body that is not what its name says is left out."""
    for path in sorted(base.bodies.glob("*")) if base.bodies.is_dir() else []:
        if path.is_file() and path.stat().st_size <= MAX_BODY_BYTES:
            body = path.read_bytes()
            if find_quote(body, quote) and sha256(body) == path.name:
                yield path.name, body


def source_bytes(base: Base, given: str) -> bytes:
    """Bytes of a source: a file, or the digest of a fetched body.

    Raises:
        BadInput: Neither exists, or it is too large.
    """
    kept = base.bodies / given
    path = kept if re.fullmatch(r"[0-9a-f]{64}", given) and kept.is_file() else Path(given)
    return read_bytes(path, limit=MAX_BODY_BYTES)


def new_claim(
    base: Base,
    claim_id: str,
    *,
    item: str,
    quote: str,
    statement: Text,
    body: bytes | None,
    given: Mapping[str, Any],
) -> Claim:
    """Build a claim from a quote that stands in its source.

    Args:
        base: The base; it must hold the item.
        claim_id: ``system/claim``, not yet taken.
        item: Id of the source, its version after ``@`` where one is meant.
        quote: The passage; it must hold exactly one figure, or ``given`` says which kind of claim it is.
        statement: What it says in our own words, zh and en.
        body: Bytes it was read in; None where nobody has them: the claim is then unverified.
        given: Fields a person states: locator, baseline, metric, conditions, provenance, kind, valid_until, topics.

    Raises:
        NothingMatches: The base holds no such item.
        WrongUse: The id is taken, or the statement is missing.
        BadInput: The quote is not in the bytes, too long, or holds no figure.
    """
    name, _, version = item.partition("@")
    _check(base, claim_id, name, version, statement)
    if len(quote) > MAX_QUOTE:
        raise BadInput(
            f"{claim_id}: not written",
            cause=f"the quote has {len(quote)} characters, more than {MAX_QUOTE}",
            remedy="quote the shortest passage that carries the number",
        )
    if body is not None and find_quote(body, quote) is None:
        raise BadInput(
            f"{claim_id}: not written",
            cause="the quote is not in the source's bytes",
            remedy="copy it from the source; kb claim new --item ID --body FILE lists what can be quoted",
        )
    values: dict[str, Any] = {"kind": "number", "provenance": "primary", **given}
    if values["kind"] == "number":
        values = {**_figures(claim_id, quote), **values}
    return Claim.model_validate(
        {
            "id": claim_id,
            "item": name,
            "version": version,
            "statement": statement.to_json(),
            "quote": quote,
            "quote_sha256": sha256(body) if body is not None else "",
            **values,
        }
    )


def _check(base: Base, claim_id: str, item: str, version: str, statement: Text) -> None:
    held: Mapping[str, Mapping[str, Item]] = base.latest_items()
    if item not in held or (version and version not in held[item]):
        raise NothingMatches(
            f"{item}: not in the base" + (f" as version {version}" if version else ""),
            cause="a claim belongs to an item the base holds",
            remedy="ingest it first",
            next_command="kb list items",
        )
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*/[a-z0-9][a-z0-9._-]*", claim_id):
        raise WrongUse(
            f"{claim_id}: no claim id", cause="it must be system/claim", remedy="for example tangram/reclaim"
        )
    path = base.root / "claims" / f"{claim_id.split('/', maxsplit=1)[0]}.toml"
    if path.is_file() and claim_id in base.claims([path.stem]):
        raise WrongUse(
            f"{claim_id}: taken",
            cause="a claim has this id",
            remedy="choose another",
            next_command=f"kb claim show {claim_id}",
        )
    if not (statement.zh and statement.en):
        raise WrongUse(
            f"{claim_id}: not written",
            cause="statements in both languages are needed",
            remedy="give --zh and --en, in your own words",
        )


def _figures(claim_id: str, quote: str) -> dict[str, Any]:
    figures = [q for q in extract(quote) if q.role == "claim"]
    if len(figures) != 1:
        raise BadInput(
            f"{claim_id}: not written",
            cause=f"the quote holds {len(figures)} figures: {', '.join(q.quote for q in figures) or 'none'}",
            remedy="quote exactly one, or say --kind state|design|formula for a claim that is no number",
        )
    figure = figures[0]
    unit, factor = vocabulary_unit(figure.unit)
    metric = metric_of(quote)
    return {
        "metric": metric if metric in METRICS else "",
        "unit": unit,
        "low": figure.low * factor,
        "high": figure.high * factor,
        "bound": figure.bound,
        "baseline": figure.baseline,
    }


ORDER = (
    "id", "kind", "item", "version", "statement", "quote", "quote_sha256", "locator", "metric", "unit", "low", "high", "bound",
    "baseline", "conditions", "provenance", "valid_until", "planned", "topics",
)  # fmt: skip
"""Order of keys in a claims file."""


def to_toml(claim: Claim) -> str:
    """A claim as a ``[[claim]]`` table; empty fields left out, the same bytes every time."""
    values = claim.to_json()
    lines = ["[[claim]]"]
    lines.extend(f"{key} = {_toml(values[key])}" for key in ORDER if values[key] not in ("", None, [], {}))
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(part)}" for key, part in value.items() if part != "") + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(part) for part in value) + "]"
    if isinstance(value, float):
        return repr(value)
    return re.sub("[\x7f-\x9f]", lambda m: f"\\u{ord(m.group()):04x}", json.dumps(value, ensure_ascii=False))


def append_claim(base: Base, claim: Claim) -> Path:
    """Append a claim to its system's file; the caller holds the write lock."""
    path = base.root / "claims" / f"{claim.id.split('/')[0]}.toml"
    old = path.read_text(encoding="utf-8") if path.is_file() else ""
    gap = "" if not old else "\n" if old.endswith("\n") else "\n\n"
    base.write(path, old + gap + to_toml(claim))
    return path
