"""Stars and actions against decisions: the same marks, decided differently."""

from __future__ import annotations

from collections.abc import Iterator

from kb.curated.words import first_action, first_decision
from kb.triage.findings import DraftText, Finding, Subject, shown

CODES = {"contradicts-itself": "two places of one text that cannot both be true"}
GENEROUS = 4
"""Stars from which dropping an entry needs explaining."""


def check(subject: Subject) -> Iterator[Finding]:
    """Decisions of every draft."""
    for draft in subject.drafts:
        rows = list(_decided(draft))
        yield from _same_marks(draft, rows)
        for n, stars, _, decision, line, said in rows:
            if (decision == "drop" and stars >= GENEROUS) or (decision == "keep" and stars == 1):
                message = f"{said}: entry {n} has {stars} stars"
                yield draft.finding(line, "contradicts-itself", message, stated=decision, counted=str(stars))


def _decided(draft: DraftText) -> Iterator[tuple[str, int, str, str, int, str]]:
    """(number, stars, action, decision, line, words) of entries that have stars and a decision."""
    for entry in draft.curated.entries:
        row = next((v for v in draft.curated.verdicts if v.entry == entry.n), None)
        decision = row.decision if row else first_decision(entry.value("decision"))
        if entry.stars is None or not decision:
            continue
        line = row.line if row else entry.line
        said = shown(draft.lines[line - 1].strip("| ")) if 0 < line <= len(draft.lines) else entry.title
        yield entry.n, entry.stars, first_action(entry.value("action")) or "", decision, line, said


def _same_marks(draft: DraftText, rows: list[tuple[str, int, str, str, int, str]]) -> Iterator[Finding]:
    """Entries with the same stars and the same action of which one is kept and another is not: one finding a group."""
    groups: dict[tuple[int, str], list[tuple[str, int, str, str, int, str]]] = {}
    for row in rows:
        groups.setdefault((row[1], row[2]), []).append(row)
    for (stars, action), group in groups.items():
        odd = [row for row in group if row[3] != group[0][3]]
        if not odd or not action:
            continue
        told = "; ".join(f"{row[0]} {row[3]}" for row in group)
        message = (
            f"{odd[0][5]}: entries with {stars} stars and the action {action} are decided differently: {told}"
        )
        yield draft.finding(odd[0][4], "contradicts-itself", message, stated=odd[0][3], counted=group[0][3])
