"""``kb why``: the decision on an item with every rule that fired, and what keeps it out of a draft."""

from __future__ import annotations

from typing import Any

import click

from kb.cli.shared import emit_json, json_option, open_base, say, text_of

NEXT = {
    "not-assessed": "no rule has looked at it yet; kb triage",
    "budget": "worth drafting, beyond the budget of its week; kb triage with a larger --budget",
    "duplicate": "the same work as an earlier item",
    "draft-gone": "it was drafted and its draft is gone; kb triage --again",
    "person:drop": "a person dropped it; kb log says why",
}


@click.command()
@click.argument("id_", metavar="ID")
@json_option
@click.pass_context
def command(ctx: click.Context, id_: str, as_json: bool) -> None:
    r"""Say why an item was kept, watched or dropped, and why it is in no draft if it is in none.

    ID is an item, its address, or an entry of a draft.

    \b
    kb why arxiv:2606.06302
    kb why jay/2026-07-02-brief#2.1 --json
    """
    from kb.ingest.known import Known
    from kb.ingest.merges import proposals
    from kb.triage.why import explain

    base = open_base(ctx)
    found = explain(base, id_)
    with Known(base) as known:
        alike = proposals(base, known, [found["item"]]).get(found["item"], [])
    found["proposed"] = [{"like": one.id, "title": one.title, "share": one.share} for one in alike]
    if as_json:
        emit_json(found)
    else:
        _tell(found)


def _tell(found: dict[str, Any]) -> None:
    version = f" v{found['version']}" if found["version"] else ""
    say(f"{found['item']}{version}  {text_of(found['title'])}")
    stars = f", {found['stars']} stars" if found["stars"] else ""
    say(
        f"  {found['decision'] or 'no decision'}{stars} by {found['by'] or 'nobody'}: {text_of(found['reason'])}"
    )
    if found["score"] is not None:
        least = found["thresholds"]
        say(f"  score {found['score']:g}; keep from {least['keep']:g}, watch from {least['watch']:g}")
    for rule in sorted(found["rules"], key=lambda one: -abs(one["weight"])):
        say(f"  {rule['weight']:+7.2f}  {rule['rule']:<18} {text_of(rule['evidence'])}")
    for other in found["duplicates"]:
        say(f"  same work as {other}")
    for other in found["proposed"]:
        say(
            f"  looks like {other['like']} ({other['share']:.2f}: {text_of(other['title'])}); kb merge or kb split says"
        )
    for what in found["blocked_by"]:
        say(f"  why not: {what}" + (f" ({NEXT[what]})" if what in NEXT else ""))
    if found["drafts"]:
        say(f"  in {', '.join(found['drafts'])}")
