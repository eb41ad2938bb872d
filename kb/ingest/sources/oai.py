"""Records of an OAI-PMH provider, arXiv's first of all.

Protocol    https://www.openarchives.org/OAI/openarchivesprotocol.html; arXiv: https://info.arxiv.org/help/oa/index.html
Query       ``query`` is a set such as ``cs:cs:DC``; ``mode`` the metadata format: arXiv (default), arXivRaw, oai_dc
Dates       the datestamp says when a record changed, never when a paper was submitted: a bulk touch gives papers of
            years ago today's datestamp. Submission is ``created``, the first version of arXivRaw or the first dc:date.
Window      days are inclusive, indexes lag and have holes: every run asks again from a week before its first day
Paging      resumption tokens; an expired one starts over once, which is safe because known records are known
Deleted     a deleted record becomes a notice on the item, the item stays
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from kb.identity import Work, arxiv_work, doi_work, identify
from kb.ingest.contract import Entry, NoAnswer, Skip, Task, one_line
from kb.ingest.dates import ReadDate, read_date
from kb.ingest.tex import plain_tex

KIND = "oai"
URL = "https://oaipmh.arxiv.org/oai"
MAX_RECORDS = 100_000
MAX_PAGES = 2000


@dataclass(frozen=True)
class Record:
    """One record, as elements."""

    header: Any
    metadata: Any
    """None for a deleted record."""


def fetch(task: Task) -> Iterator[Record]:
    """Yield the records that changed since the window began."""
    url = task.config.url or URL
    query = {"verb": "ListRecords", "metadataPrefix": task.config.mode or "arXiv"}
    if task.config.query:
        query["set"] = task.config.query
    query["from"] = (task.window.start - task.requery).date().isoformat()
    token, restarted, count = "", False, 0
    for _ in range(MAX_PAGES):
        asked = {"verb": "ListRecords", "resumptionToken": token} if token else query
        root = read(task.get(f"{url}?{urlencode(asked)}", accept="text/xml, application/xml").body, url)
        if (error := error_of(root)) is not None:
            if error[0] == "noRecordsMatch":
                return
            if error[0] == "badResumptionToken" and token and not restarted:
                token, restarted = "", True
                task.report.note("the resumption token had expired; started over")
                continue
            raise NoAnswer(
                "not-found" if error[0] == "idDoesNotExist" else "bad-request", url, f"{error[0]}: {error[1]}"
            )
        for record in records(root):
            count += 1
            yield record
        token = (root.findtext(".//{*}resumptionToken", "") or "").strip()
        if not token:
            return
        if count >= MAX_RECORDS:
            break
    task.report.fail("partial", f"{count:,} records and no end: narrow the set or the days")


def read(body: bytes, url: str) -> Any:
    """Parse an answer.

    Raises:
        NoAnswer: It is empty, cut off, or no OAI-PMH.
    """
    from lxml import etree

    if not body.strip():
        raise NoAnswer("empty-body", url, "the answer has no bytes")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    try:
        root = etree.fromstring(body, parser=parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        is_cut = b"OAI-PMH" in body[:2000] and b"</OAI-PMH>" not in body[-200:]
        raise NoAnswer(
            "truncated" if is_cut else "not-a-feed", url, f"the answer is not whole XML: {error}"
        ) from error
    if etree.QName(root).localname not in {"OAI-PMH", "record"}:
        raise NoAnswer("not-a-feed", url, f"<{etree.QName(root).localname}> where <OAI-PMH> is expected")
    return root


def error_of(root: Any) -> tuple[str, str] | None:
    """Code and text of an OAI error, or None."""
    node = root.find("{*}error")
    return (node.get("code", ""), one_line(node.text or "", 200)) if node is not None else None


def records(root: Any) -> Iterator[Record]:
    """Records of an answer."""
    for node in root.iter("{*}record"):
        if (header := node.find("{*}header")) is not None:
            metadata = node.find("{*}metadata")
            yield Record(header, metadata[0] if metadata is not None and len(metadata) else None)


def to_entry(raw: Record, task: Task) -> Entry | Skip:
    """Turn a record into an entry."""
    identifier = one_line(raw.header.findtext("{*}identifier", ""), 300)
    if raw.header.get("status") == "deleted" or raw.metadata is None:
        work = arxiv_work(identifier)
        if work is None or not task.memory.has(work.id):
            return Skip(f"deleted record {identifier}", is_outside=True)
        return Entry(id=work.id, notices=("withdrawn: the archive deleted its record",), is_notice=True)
    values = _values(raw.metadata)
    work = _work(identifier, values)
    title = one_line(plain_tex((values.get("title") or [""])[0]))
    if work is None or not title:
        return Skip(f"record {identifier} has no {'title' if work else 'address'}")
    datestamp = read_date(raw.header.findtext("{*}datestamp", ""), "UTC")
    doi = next((doi_work(text).id for text in values.get("doi", []) if text.startswith("10.")), "")
    return Entry(
        id=work.id,
        version=work.version,
        url=work.url,
        aliases=(doi,) if doi and doi != work.id else (),
        title=title,
        authors=_authors(raw.metadata, values),
        submitted=_submitted(values),
        updated=(datestamp, "datestamp") if datestamp else None,
        text=" ".join((values.get("abstract") or values.get("description") or [""])[0].split()),
        notices=_withdrawn(values),
    )


def _values(metadata: Any) -> dict[str, list[str]]:
    """Texts of the metadata's children by local name, in order."""
    found: dict[str, list[str]] = {}
    for node in metadata.iter():
        if isinstance(node.tag, str) and (node.text or "").strip() and not len(node):
            found.setdefault(node.tag.rpartition("}")[2], []).append(node.text.strip())
    versions = [
        node.get("version", "")
        for node in metadata.iter()
        if isinstance(node.tag, str) and node.tag.endswith("}version")
    ]
    if versions:
        found["versions"] = versions
    return found


def _work(identifier: str, values: dict[str, list[str]]) -> Work | None:
    version = (values.get("versions") or [""])[-1].lstrip("v")
    for text in [identifier, *values.get("id", []), *values.get("identifier", [])]:
        work = identify(text) if "/" in text or ":" in text else arxiv_work(text)
        if work and (work.id.startswith(("arxiv:", "doi:")) or text.startswith("http")):
            return Work(work.id, version or work.version, work.url) if work.id.startswith("arxiv:") else work
    return None


def _submitted(values: dict[str, list[str]]) -> tuple[ReadDate, str] | None:
    dates = values.get("created", []) or [re.sub(r"^\w{3}, ", "", text) for text in values.get("date", [])]
    read_dates = [date for text in dates if (date := read_date(text, "UTC"))]
    name = "created" if values.get("created") else "date"
    return (min(read_dates, key=lambda date: date.day), name) if read_dates else None


def _authors(metadata: Any, values: dict[str, list[str]]) -> tuple[str, ...]:
    names = []
    for node in metadata.iter():
        if isinstance(node.tag, str) and node.tag.endswith("}author"):
            parts = {
                child.tag.rpartition("}")[2]: child.text or "" for child in node if isinstance(child.tag, str)
            }
            names.append(
                " ".join(
                    p
                    for p in (parts.get("forenames", ""), parts.get("keyname", ""), parts.get("suffix", ""))
                    if p
                )
            )
    names = (
        names or values.get("creator", []) or re.split(r",\s*(?:and\s+)?", (values.get("authors") or [""])[0])
    )
    return tuple(dict.fromkeys(one_line(plain_tex(name), 120) for name in names if name.strip()))


def _withdrawn(values: dict[str, list[str]]) -> tuple[str, ...]:
    comment = one_line((values.get("comments") or [""])[0], 300)
    return (f"withdrawn: {comment}",) if re.search(r"\bwithdrawn\b", comment, re.IGNORECASE) else ()
