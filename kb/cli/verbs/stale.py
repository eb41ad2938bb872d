"""``kb stale``: verdicts that no longer follow from what stands in the base, and why."""

from __future__ import annotations

import click

from kb.cli.shared import emit_json, emit_table, json_option, note, open_base


@click.command()
@click.option("--why", is_flag=True, help="One line per cause, with what to do.")
@json_option
@click.pass_context
def command(ctx: click.Context, why: bool, as_json: bool) -> int:
    r"""List stale verdicts; exit 1 where there are any.

    Causes are the source's version, the text of the claim, its rule, the code of the reproduction and what it imports,
    its inputs, the environment, and age. Nothing is run.

    \b
    kb stale --why
    """
    from kb import clock
    from kb.repro.harness.stale import find_stale

    base = open_base(ctx)
    found = find_stale(base, clock.now().date())
    if as_json:
        emit_json([{"claim": s.claim, "cause": s.cause, "why": s.why, "next": s.next_command} for s in found])
    elif why:
        emit_table(
            [[s.claim, s.cause, s.why, s.next_command] for s in found], ["claim", "cause", "why", "next"]
        )
    else:
        causes: dict[str, list[str]] = {}
        for one in found:
            causes.setdefault(one.claim, []).append(one.cause)
        emit_table([[claim, ", ".join(names)] for claim, names in causes.items()], ["claim", "causes"])
    if not found:
        note("no verdict is stale")
    return 1 if found else 0
