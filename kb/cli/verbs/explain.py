"""``kb explain CODE``: cause and next step of an exit code."""

from __future__ import annotations

import click

from kb.cli.shared import emit_json, json_option, say
from kb.errors import NothingMatches

CODES: dict[int, tuple[str, str]] = {
    0: ("done, or there was nothing to do", "nothing"),
    1: (
        "a check ran and found something: findings, staleness, lint, drift",
        "read the findings above; kb check",
    ),
    2: (
        "wrong use or configuration, or a NAME or ID that matches nothing",
        "read the remedy; kb VERB --help",
    ),
    3: ("a person has to decide: a held block, a conflict, a missing review", "kb review"),
    4: (
        "partly done: some sources or items failed, the rest is kept",
        "run the same command again; kb status",
    ),
    5: (
        "it cannot run here: no device, no weights, offline, a package is missing",
        "kb doctor names what is missing",
    ),
    6: ("busy: another writer holds the lock; its owner was printed", "wait, or kb lock show"),
    7: (
        "the remote refused and the tries are used up; nothing is lost",
        "kb sync --once later; kb queue list",
    ),
    70: ("a bug in kb; a trace was saved and its path printed", "report it with the trace"),
    130: ("interrupted; the state can be resumed", "run the same command again"),
}
"""Exit code → (meaning, next step). When several apply, see `kb.errors.PRECEDENCE`."""


@click.command()
@click.argument("code", type=int, required=False)
@json_option
def command(code: int | None, as_json: bool) -> None:
    r"""Say what an exit CODE means and what to do next; without CODE, all of them.

    \b
    kb explain 3
    """
    if code is not None and code not in CODES:
        raise NothingMatches(
            f"exit code {code}: kb never ends with it",
            cause=f"the codes are {', '.join(map(str, CODES))}",
            remedy="give one of them",
            next_command="kb explain",
        )
    rows = [{"code": c, "meaning": m, "next": n} for c, (m, n) in CODES.items() if code in (None, c)]
    if as_json:
        emit_json(rows)
        return
    for row in rows:
        say(f"{row['code']:>3}  {row['meaning']}\n     next: {row['next']}")
