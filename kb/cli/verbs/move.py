"""``kb move``: drafts from stage to stage, with a reason in the log."""

from __future__ import annotations

import click

from kb.cli.shared import acting_person, dry_run_option, emit_json, json_option, note, open_base, say
from kb.vocab import STAGES


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@click.option("--to", "stage", type=click.Choice(STAGES), required=True, help="Where to.")
@click.option("--reason", default="", help="Why; kept in the log. No move goes without one.")
@dry_run_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, ids: tuple[str, ...], stage: str, reason: str, dry_run: bool, as_json: bool
) -> None:
    r"""Move drafts, or one entry of a draft, to another stage: inbox, review, published.

    A stage cannot be skipped. An entry ``…#4`` is taken out into a draft of its own. All IDs move or none does. A draft
    that reports what our numbers contradict is published only with a reason that says why.

    \b
    kb move jay/2026-06-10-kv-serve --to review --reason "worth a second pair of eyes"
    kb move jay/2026-06-10-kv-serve#4 --to review --reason "the others can wait"
    """
    from kb import clock
    from kb.stages import check_reason, contradicted_claims, move, plan_move

    base = open_base(ctx)
    if dry_run:
        done = [plan_move(base, name, stage) for name in ids]
    else:
        with base.writing("kb move"):
            for name in ids:
                if not plan_move(base, name, stage).is_done:
                    check_reason(base, name, stage, reason)
            who, at = acting_person(base), clock.stamp(clock.now())
            done = [move(base, name, stage, reason=reason, who=who, at=at) for name in ids]
    rows = [
        {
            "id": one.id,
            "draft": one.draft,
            "from": one.from_stage,
            "to": one.to_stage,
            "path": base.relative(one.path),
            "seq": one.seq,
        }
        for one in done
    ]
    against = {
        one.id: contradicted_claims(base, one.draft) for one in done if stage == "published" and not dry_run
    }
    for name, claims in against.items():
        if claims:
            note(f"{name}: our numbers contradict {', '.join(claims)}; your reason stands in the log")
    if as_json:
        emit_json(rows)
        return
    for one, row in zip(done, rows, strict=True):
        would = "would move" if dry_run else f"moved ({one.seq})"
        say(f"{one.id}: " + (f"in {stage} already" if one.is_done else f"{would} to {row['path']}"))
