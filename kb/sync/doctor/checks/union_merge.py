"""Append-only files merge by union: without the rule two people who pull get conflicts in JSON Lines."""

from __future__ import annotations

from collections.abc import Iterator

from kb.sync.doctor.contract import Finding, Patient, State

TITLE = "*.jsonl merges by union"


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    if patient.clone is not None and not rules(patient, "merge", "items/2026-01.jsonl"):
        yield Finding(
            State.WARN, "no rule merge=union for *.jsonl in .gitattributes: git pull will report conflicts in them",
            "kb doctor --fix (adds the line; commit it)",
        )  # fmt: skip


def fix(patient: Patient) -> None:
    """Append the rule to the base's .gitattributes."""
    path = patient.base.root / ".gitattributes"
    before = path.read_bytes() if path.is_file() else b""
    gap = b"" if not before or before.endswith(b"\n") else b"\n"
    patient.base.write(path, before + gap + b"*.jsonl merge=union\n")


def rules(patient: Patient, attribute: str, path: str = "published/x.md") -> str:
    """Value of an attribute for a path of the base; empty if unspecified."""
    if patient.clone_and_prefix is None:
        return ""
    clone, prefix = patient.clone_and_prefix
    said = clone.maybe("check-attr", "-z", attribute, "--", prefix + path).split("\0")
    return said[2] if len(said) > 2 and said[2] != "unspecified" else ""  # noqa: PLR2004  path, name, value
