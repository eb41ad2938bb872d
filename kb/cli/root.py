"""The program: finds verbs by looking in ``kb/cli/verbs``, prints errors, returns the contract's exit codes."""

from __future__ import annotations

import errno
import importlib
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import click

import kb
from kb.cli.shared import printable
from kb.errors import CannotRun, KbError

VERBS = Path(__file__).parent / "verbs"


def verb_names() -> list[str]:
    """Names of all verbs: one file each, ``sources.py`` holds the verb ``sources``."""
    return sorted(p.stem for p in VERBS.glob("*.py") if not p.stem.startswith("_"))


def keep_examples(command: click.Command) -> click.Command:
    r"""Let raw docstrings mark their examples: ``\b`` on a line of its own keeps the lines below as they are."""
    for text in ("help", "epilog"):
        if value := getattr(command, text, None):
            setattr(command, text, value.replace("\\b\n", "\b\n"))
    if isinstance(command, click.Group):
        for part in command.commands.values():
            keep_examples(part)
    return command


class VerbGroup(click.Group):
    """A group that imports a verb only when it is asked for, so that one verb never loads another's libraries."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return verb_names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in verb_names():
            return None
        command = importlib.import_module(f"kb.cli.verbs.{cmd_name}").command
        assert isinstance(command, click.Command)  # noqa: S101  a unit's contract, tested by tests/cli
        return keep_examples(command)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        import difflib

        if args and not args[0].startswith("-") and args[0] not in verb_names():
            near = difflib.get_close_matches(args[0], verb_names(), n=1)
            hint = f"did you mean {near[0]}?" if near else "see kb --help"
            raise click.UsageError(f"there is no verb {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


def print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Print the version and end."""
    if value and not ctx.resilient_parsing:
        click.echo(f"kb {kb.__version__}")
        ctx.exit()


@click.group(
    cls=VerbGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option("-C", "folder", metavar="DIR", help="The knowledge base. [env: KB_ROOT]")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_version,
    help="Print the version.",
)
@click.pass_context
def cli(ctx: click.Context, folder: str | None) -> None:
    r"""Re-check the numbers that papers and blogs give about LLM inference.

    \b
    kb ingest --since 2026-06-10    fetch what is new, with a reason for each decision
    kb repro tangram --gpu          run what stands behind the claims of a system
    kb sync --once                  the one job that writes to the remote

    \b
    The base is found from -C, KB_ROOT, kb.toml upwards, then ./shared/research-kb.
    Answers go to stdout, everything else to stderr. Exit codes: kb explain.
    """
    ctx.obj = folder


keep_examples(cli)


def print_error(error: KbError) -> None:
    """Print what, cause, remedy and the next command on stderr."""
    label = {1: "found", 3: "needs you", 4: "partly done", 6: "busy"}.get(error.exit_code, "error")
    lines = [
        f"{label}: {error.what}",
        f"  cause:  {error.cause}",
        f"  remedy: {error.remedy}",
        f"  try: {error.next_command}",
    ]
    click.echo("\n".join(printable(line) for line in lines), err=True)


def save_trace() -> Path:
    """Keep the trace of a bug and return where."""
    import hashlib
    import tempfile

    text = traceback.format_exc()
    folder = Path(os.environ.get("XDG_STATE_HOME") or tempfile.gettempdir()) / f"kb-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"trace-{hashlib.sha256(text.encode()).hexdigest()[:12]}.txt"
    path.write_text(f"kb {kb.__version__}  {sys.version}\n{' '.join(sys.argv)}\n\n{text}", encoding="utf-8")
    return path


def run(args: list[str] | None = None) -> int:
    """Run the program and return its exit code; never raises."""
    stdout = sys.stdout
    try:
        result = cli.main(args=args, prog_name="kb", standalone_mode=False)
    except KbError as error:
        print_error(error)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        if isinstance(error, click.UsageError):
            click.echo("  try: kb --help", err=True)
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted: what was finished is kept; run the same command again to go on", err=True)
        return 130
    except SystemExit as stop:
        # where the reader of our output went away (| head), click wraps stdout and ends so: nothing failed
        result = stop.code if sys.stdout is stdout else 0
    except OSError as error:
        return report_refusal(error)
    except Exception:  # noqa: BLE001  the last resort of the program
        return report_bug()
    return result if isinstance(result, int) else 0


REFUSALS = {
    errno.EACCES: "as a user who may, or change its owner and mode",
    errno.EPERM: "as a user who may, or change its owner and mode",
    errno.EROFS: "on a file system that can be written",
    errno.ENOSPC: "after freeing some disk space",
    errno.EDQUOT: "after freeing some of your quota",
    errno.EFBIG: "with larger files allowed (ulimit -f)",
    errno.EIO: "after looking at the disk (dmesg)",
    errno.EMFILE: "with more open files allowed (ulimit -n)",
    errno.ENOTDIR: "after moving away the file that stands where a folder belongs",
    errno.EISDIR: "after moving away the folder that stands where a file belongs",
    errno.ENAMETOOLONG: "with a shorter path to the base",
    errno.ELOOP: "after removing the symbolic link that leads back to itself",
}
"""What a system refuses through no fault of the program → when to run the command again."""


def report_refusal(error: OSError) -> int:
    """Say which file the system would not give and what helps; anything else is a bug. Returns the exit code."""
    if error.errno not in REFUSALS:
        return report_bug()
    what = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else "a file"
    said = CannotRun(
        f"{what}: {(error.strerror or str(error)).lower()}", cause="the operating system refused it",
        remedy=f"run it again {REFUSALS[error.errno]}; what was finished is kept", next_command="kb doctor",
    )  # fmt: skip
    print_error(said)
    return said.exit_code


def report_bug() -> int:
    """Keep the trace of the exception being handled and say where; returns the exit code."""
    path = save_trace()
    click.echo(f"bug: kb met an error it does not know\n  trace:  {path}\n  try: kb explain 70", err=True)
    return 70


def main() -> None:
    """Entry point of the console script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    code = run()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
