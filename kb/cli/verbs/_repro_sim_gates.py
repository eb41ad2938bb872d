"""``kb repro sim-gates``: may the simulator judge? Queueing theory, and three real runs replayed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from kb.cli.shared import emit_json, emit_table, json_option, note

if TYPE_CHECKING:
    from kb.repro.sim.queueing import Gate


@click.command()
@json_option
def command(as_json: bool) -> int:
    r"""Hold the simulator against queueing theory and against three real vLLM runs; exit 1 where a gate fails.

    \b
    kb data fetch llmservingsim     the real runs; without them their gates are skipped
    kb repro sim-gates
    """
    from kb.datasets import data_folder
    from kb.repro.sim import queueing, replay

    found: list[Gate] = list(queueing.gates())
    folder = data_folder()
    absent = [path for path in replay.files(folder) if not path.is_file()]
    if absent:
        note(f"replay of real runs skipped: {absent[0].relative_to(folder)} is not in {folder}; "
             "kb data fetch llmservingsim, or set KB_DATA_DIR")  # fmt: skip
    else:
        found += replay.gates(folder)
    if as_json:
        emit_json([asdict(gate) | {"error": gate.error, "holds": gate.holds} for gate in found])
    else:
        emit_table([_row(gate) for gate in found],
                   ["gate", "simulated", "expected", "error", "bar", "published", "holds"])  # fmt: skip
        if not absent:
            note("measured runs, profiles and published errors: github.com/casys-kaist/LLMServingSim (MIT)")
    return 0 if all(gate.holds for gate in found) else 1


def _row(gate: Gate) -> list[str]:
    published = getattr(gate, "published", None)
    return [
        gate.name,
        f"{gate.simulated:.5g}",
        f"{gate.expected:.5g}",
        f"{gate.error:+.1%}",
        f"{gate.bar:.2g}",
        "" if published is None else f"{published:+.1%}",
        "yes" if gate.holds else "NO",
    ]
