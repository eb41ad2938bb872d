"""``kb ingest``: what sources gave, or drafts that people wrote, into the base."""

from __future__ import annotations

import datetime as dt
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kb.cli.shared import dry_run_option, emit_json, json_option, note, open_base, say
from kb.errors import WrongUse, worst

if TYPE_CHECKING:
    from kb.ingest.files import FileReport
    from kb.ingest.run import Outcome
    from kb.model import SourceConfig
    from kb.store import Base

QUIET = frozenset({"ok", "no-news", "not-modified"})
"""Statuses that need no word of explanation while a run goes on."""


def day(_: click.Context, param: click.Parameter, value: str | None) -> dt.date | None:
    """Read an option that is a day."""
    if value is None:
        return None
    try:
        return dt.date.fromisoformat(value)
    except ValueError as error:
        raise WrongUse(
            f"--{param.name} {value}: no such day",
            cause="it must be YYYY-MM-DD",
            remedy="for example 2026-06-10",
        ) from error


@click.command()
@click.option("--since", callback=day, metavar="DATE", help="First day that counts, in the base's zone.")
@click.option("--until", callback=day, metavar="DATE", help="Last day that counts.")
@click.option("--tz", "zone", default="", metavar="ZONE", help="Zone of these days instead of the base's.")
@click.option("--source", "names", multiple=True, metavar="S", help="Only this source, or KIND:QUERY.")
@click.option(
    "--url", "urls", multiple=True, metavar="U", help="One page, or a paper by any of its addresses."
)
@click.option("--arxiv-id", "arxiv_ids", multiple=True, metavar="ID", help="One paper.")
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DRAFT",
    help="A curator's draft.",
)
@click.option("--curator", help="Who wrote the draft, where the text does not say.")
@click.option("--date", metavar="DAY", help="Day of the draft, where the text does not say.")
@click.option("--slug", help="Name of the draft in the inbox; else the file's name.")
@click.option("--no-triage", is_flag=True, help="Take items in, decide nothing about them.")
@click.option("--explain", is_flag=True, help="Say which key matched what.")
@click.option("--events", is_flag=True, help="Progress as one JSON object per line on stderr.")
@dry_run_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    since: dt.date | None,
    until: dt.date | None,
    zone: str,
    names: tuple[str, ...],
    urls: tuple[str, ...],
    arxiv_ids: tuple[str, ...],
    files: tuple[Path, ...],
    curator: str | None,
    date: str | None,
    slug: str | None,
    no_triage: bool,
    explain: bool,
    events: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    r"""Fetch what is new from the sources, or take drafts that people wrote into the inbox.

    \b
    kb ingest --since 2026-06-10
    kb ingest --since 2026-06-10 --source nvidia-eai
    kb ingest --arxiv-id 2606.06302 --url https://example.org/post
    kb ingest --file 2026-06-10-kv-serve.txt

    Every source ends with one status and its reason; one that fails stops no other. Exit code 4 where one did not answer,
    6 where another ingest or a sync is running. KB_CONTACT is put into the User-Agent; KB_REPLAY names a local server that
    answers for every host (python -m kb.ingest.replay); KB_PACE=0 turns the pauses between requests off.
    """
    base = open_base(ctx)
    asked = _chosen(
        base, names, arxiv_ids, urls, everything=not (names or arxiv_ids or urls or files) or bool(since)
    )
    outcome = (
        _fetch(base, asked, since, until, zone, events=events, dry_run=dry_run)
        if asked or not files
        else None
    )
    drafts = _drafts(base, files, curator, date, slug, dry_run=dry_run) if files else None
    if explain:
        _explain_names(urls, arxiv_ids)
    written = _triage(base) if outcome is not None and not (no_triage or dry_run) else []
    _print(outcome, drafts, written, as_json=as_json, explain=explain)
    codes = [outcome.exit_code()] if outcome else []
    return worst([*codes, *(error.exit_code for error in (drafts.failed if drafts else []))])


def _chosen(
    base: Base, names: tuple[str, ...], arxiv_ids: tuple[str, ...], urls: tuple[str, ...], *, everything: bool
) -> list[SourceConfig]:
    from kb.ingest.choose import choose_sources
    from kb.ingest.run import named_sources

    named = named_sources(arxiv_ids, urls)
    followed = choose_sources(base, names) if names or (everything and not named) else []
    return [*followed, *named]


def _explain_names(urls: tuple[str, ...], arxiv_ids: tuple[str, ...]) -> None:
    """Say which work each address or id on the command line names."""
    from kb.identity import identify

    for text in (*urls, *arxiv_ids):
        work = identify(text)
        named = work.id + (f", version {work.version}" if work.version else "") if work else "no address"
        note(f"{text} is {named}")


def _fetch(
    base: Base,
    sources: list[SourceConfig],
    since: dt.date | None,
    until: dt.date | None,
    zone: str,
    *,
    events: bool,
    dry_run: bool,
) -> Outcome:
    from kb.config import load_user
    from kb.http import Client
    from kb.ingest.run import ingest, open_window

    window = open_window(base, since, until, zone)
    if not events:
        note(f"window: {window.describe()}")
    with Client(load_user()) as client, _Progress(events=events) as progress:
        return ingest(base, sources, window, client, dry_run=dry_run, listen=progress)


def _drafts(
    base: Base,
    files: tuple[Path, ...],
    curator: str | None,
    date: str | None,
    slug: str | None,
    *,
    dry_run: bool,
) -> FileReport:
    from kb.cli.root import print_error
    from kb.ingest.files import ingest_files

    with base.writing("kb ingest"):
        report = ingest_files(base, files, curator=curator, date=date, slug=slug, dry_run=dry_run)
    for error in report.failed:
        print_error(error)
    return report


def _triage(base: Base) -> list[dict[str, Any]]:
    """Decide about what came in, and whatever else has no decision yet; the drafts that were written."""
    from kb.triage.run import run_triage

    with base.writing("kb ingest"):
        report = run_triage(base)
    if report.assessed:
        note(f"triage: {report.assessed} assessed, {len(report.drafts)} drafts written")
    return report.drafts


def _print(
    outcome: Outcome | None,
    drafts: FileReport | None,
    written: list[dict[str, Any]],
    *,
    as_json: bool,
    explain: bool,
) -> None:
    if explain and outcome:
        for line in outcome.explained:
            note(line)
    if as_json:
        emit_json(_document(outcome, drafts, written))
        return
    if outcome:
        _print_outcome(outcome)
    for made in written:
        say(f"{made['path']}: {made['entries']} entries")
    for draft in drafts.drafts if drafts else []:
        say(
            f"{draft.path}: {draft.entries} entries ({draft.new} new, {draft.updated} updated, "
            f"{draft.known} known), {draft.candidates} candidates"
        )
        for number, why in draft.unreadable:
            note(f"  line {number}: {why}")
        for text in draft.notes:
            note(f"  {text}")


def _print_outcome(outcome: Outcome) -> None:
    from kb.cli.shared import emit_rows

    columns = ("name", "status", "fetched", "new", "updated", "known", "outside", "unusable", "detail")
    emit_rows([report.to_json() for report in outcome.reports], as_json=False, fields="", columns=columns)
    say(f"{len(outcome.new)} new, {len(outcome.updated)} updated")
    for work, alike in outcome.proposed.items():
        for one in alike:
            say(f"{work} looks like {one.id} ({one.share:.2f}); kb merge or kb split says")


def _document(
    outcome: Outcome | None, drafts: FileReport | None, written: list[dict[str, Any]]
) -> dict[str, Any]:
    window: dict[str, Any] = {"since": "", "utc": ["", ""]}
    found: dict[str, Any] = {
        "window": window,
        "sources": [],
        "items": {"new": [], "updated": []},
        "proposed": [],
        "drafts": [],
    }
    if outcome:
        found |= outcome.to_json()
    if drafts:
        given = drafts.to_json()
        found["drafts"] = [*found["drafts"], *given["drafts"]]
        found["sources"] = [*found["sources"], *given["sources"]]
        found["items"] = {key: [*found["items"][key], *given["items"][key]] for key in ("new", "updated")}
    found["drafts"] = [*found["drafts"], *written]
    return found


class _Progress:
    """Progress on stderr: a bar on a terminal, a line per source elsewhere, JSON lines with ``--events``."""

    def __init__(self, *, events: bool) -> None:
        self._events = events
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: dict[str, Any]) -> None:
        if self._events:
            click.echo(json.dumps(event, ensure_ascii=False), err=True)
            return
        if event["event"] == "start" and sys.stderr.isatty() and len(event["sources"]) > 1:
            self._open(len(event["sources"]))
        elif event["event"] == "source":
            if self._bar is not None:
                self._bar.update(self._task, advance=1, description=event["name"])
            else:
                why = "" if event["status"] in QUIET else f" ({event['detail']})"
                note(f"{event['name']}: {event['status']}, {event['new']} new of {event['fetched']}{why}")

    def _open(self, total: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        from kb.cli.shared import console

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=console(), transient=True)
        self._task = self._bar.add_task("sources", total=total)
        self._bar.start()
