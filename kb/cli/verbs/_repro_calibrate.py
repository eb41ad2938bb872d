"""``kb repro calibrate``: fit the simulator's roofline to measured tables."""

from __future__ import annotations

import click

from kb.cli.shared import emit_json, emit_table, json_option


@click.command()
@json_option
def command(as_json: bool) -> None:
    r"""Fit t0, mfu and mbu to the layer profiles of three machines; what lies on its bound is named.

    \b
    kb data fetch llmservingsim
    kb repro calibrate
    """
    from kb.datasets import data_folder
    from kb.errors import CannotRun
    from kb.repro.sim import replay

    folder = data_folder()
    absent = [path for path in replay.files(folder) if not path.is_file()]
    if absent:
        raise CannotRun(
            "kb repro calibrate: nothing was fitted",
            cause=f"{absent[0].name} of the profiles is not in {folder}",
            remedy="fetch them, or point KB_DATA_DIR at a folder that has them",
            next_command="kb data fetch llmservingsim",
        )
    fits = [(run.name, replay.fitted(replay.load(run, folder))) for run in replay.RUNS]
    rows = [
        {"table": name, "t0_s": f.t0, "mfu": f.mfu, "mbu": f.mbu, "error": f.error, "held": ", ".join(f.held)}
        for name, f in fits
    ]
    if as_json:
        emit_json(rows)
        return
    cells = [[f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows]
    emit_table(cells, list(rows[0]))
