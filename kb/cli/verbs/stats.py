"""``kb stats``: how good the curating is: keep rate, agreement with people, overturns by source, star and rule."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from kb.cli.shared import emit_json, emit_table, json_option, open_base, say, text_of

COLUMNS = ("assessed", "kept", "keep_rate", "reviewed", "overturned", "overturn_rate")


@click.command()
@click.option(
    "--labelled",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Judge labelled texts (JSON Lines) instead of the base.",
)
@click.option(
    "--labels", metavar="FILE", type=click.Path(path_type=Path), help="Their labels (TSV), where apart."
)
@json_option
@click.pass_context
def command(ctx: click.Context, labelled: Path | None, labels: Path | None, as_json: bool) -> None:
    r"""Compare what the rules decide with what people decide.

    A person decides by a draft of their own, by editing an entry's front matter, or by moving a draft on or away.
    With --labelled, texts with a curator's labels are judged by the rules of this base, and each disagreement is
    explained: key, title, text, publisher_host, published, decision, stars per line.

    \b
    kb stats
    kb stats --labelled entries.jsonl --labels labels.tsv --json
    """
    base = open_base(ctx)
    if labelled is None:
        from kb.triage.quality import measure

        found = measure(base)
    else:
        from kb.triage.agreement import judge_labelled, read_labelled, report_labelled
        from kb.triage.score import make_scorer

        settings = base.settings
        scorer = make_scorer(base.rules(), base.topics().values(), settings.triage, settings.language)
        found = report_labelled(judge_labelled(scorer, read_labelled(labelled, labels)))
    if as_json:
        emit_json(found)
    elif labelled is None:
        _tell(found)
    else:
        _tell_agreement(found)
        for one in found["disagreements"]:
            _tell_disagreement(one)


def _tell(found: Mapping[str, Any]) -> None:
    kept = f"{found['kept']} kept ({_share(found['keep_rate'])})"
    say(f"{found['items']} items, {found['assessed']} assessed by the rules, {kept}")
    say(f"{found['reviewed']} reviewed by a person, {found['overturned']} overturned")
    _tell_agreement(found["agreement"])
    for group, name in (("by_source", "source"), ("by_stars", "stars"), ("by_rule", "rule")):
        if found[group]:
            say()
            emit_table(
                [[text_of(row[key]) for key in (name, *COLUMNS)] for row in found[group]], (name, *COLUMNS)
            )


def _tell_agreement(found: Mapping[str, Any]) -> None:
    if not found["pairs"] and not found["star_pairs"]:
        say("no item was judged by both a person and the rules")
        return
    constant = found["constant_answer"]
    say(
        f"decisions: {found['pairs']} pairs, {_share(found['accuracy'])} equal, κ = {found['kappa']}"
        f" (always “{constant['decision']}”: {_share(constant['accuracy'])}, κ = 0)"
    )
    say(
        f"stars: {found['star_pairs']} pairs, mean distance {found['mean_star_gap']}"
        f" (always {constant['stars']}: {constant['mean_star_gap']})"
    )
    rows = [[row["curator"], row["rules"], str(row["count"])] for row in found["confusion"]]
    if rows:
        emit_table(rows, ("curator", "rules", "count"))


def _tell_disagreement(one: Mapping[str, Any]) -> None:
    said = [f"{who} {one[who]['decision'] or '-'}/{one[who]['stars'] or '-'}" for who in ("curator", "rules")]
    say(f"{text_of(one['entry'])}: {', '.join(said)}\n    {text_of(one['reason'])}")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
