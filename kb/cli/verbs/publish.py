"""``kb publish``: write verdicts, figures and reading lists into the pages people own."""

from __future__ import annotations

import click

from kb.cli.shared import dry_run_option, emit_json, json_option, note, open_base, say


@click.command()
@click.argument("pages", nargs=-1, metavar="[PAGE]...")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a run would change a file.")
@click.option("--diff", is_flag=True, help="Write nothing; print the changes as a diff.")
@dry_run_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, pages: tuple[str, ...], check: bool, diff: bool, dry_run: bool, as_json: bool
) -> int:
    r"""Bring the blocks of topic PAGEs up to date; without PAGE, of all.

    Only text between kb's markers changes, and what a person wrote there is merged. Where both changed the same
    lines the page stays as it is, the new text waits beside it, and the command ends with 3.

    \b
    kb publish                      all pages
    kb publish inference/kvcache    one page
    kb publish --diff               what would change
    """
    from kb.publish.run import make_plan, publish, raise_if_held

    base = open_base(ctx)
    names = [page.strip("/") for page in pages]
    only_look = check or diff or dry_run
    plan = make_plan(base, names) if only_look else publish(base, names)
    if as_json:
        emit_json(plan.to_json())
    elif diff:
        for change in plan.changes:
            say(change.diff(), nl=False)
    else:
        for change in plan.changes:
            say(f"{change.action:<7} {change.path}")
    for line in plan.notes:
        note(line)
    done = "would change" if only_look else "changed"
    note(f"{len(plan.changes)} files {done}" if plan.changes else "nothing to do")
    if not only_look or check:
        raise_if_held(plan)
    return 1 if check and plan.changes else 0
