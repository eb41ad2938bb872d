"""A run as ``kb repro --json`` prints it; the shape is part of the contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kb.files import digest
from kb.model import Verdict
from kb.repro.harness.digests import SHORT
from kb.repro.harness.run import Report


def report_json(reports: Sequence[Report], system: str) -> dict[str, Any]:
    """The document of ``kb repro NAME --json``; several reproductions of one system come as one."""
    runs = [report.run for report in reports]
    return {
        "run": runs[0] if len(runs) == 1 else digest(runs)[:SHORT],
        "system": system,
        "repros": [report.unit.name for report in reports],
        "environment": reports[0].environment.to_json(),
        "seed": reports[0].seed,
        "quick": reports[0].quick,
        "seconds": round(sum(report.seconds for report in reports), 3),
        "claims": [claim_json(verdict) for report in reports for verdict in report.verdicts],
        "blocked": [
            {"repro": report.unit.name, "case": case, "cause": cause}
            for report in reports
            for case, cause in report.blocked.items()
        ],
        "measurements": [
            {
                "metric": one.metric,
                "unit": one.unit,
                "case": one.case,
                "samples": list(one.samples),
                "expected": one.expected,
                "level": one.level,
            }
            for report in reports
            for one in report.measurements
        ],
    }


def claim_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict as the contract's claim object."""
    whole = verdict.to_json()
    shown = {"id": verdict.claim}
    for name in (
        "verdict",
        "level",
        "source",
        "measured",
        "reason",
        "reason_zh",
        "cases",
        "repro",
        "machine",
    ):
        shown[name] = whole[name]
    return shown
