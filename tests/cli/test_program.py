"""The program: cheap to start, honest exit codes, one JSON document on stdout, help that shows how."""

import os
import re
import subprocess
import sys

import click
import pytest

from kb.cli.root import cli, run, verb_names
from kb.errors import KbError, worst

HEAVY = {"torch", "triton", "duckdb", "httpx", "matplotlib"}


def modules_after(*args, root):
    """Names of the top-level modules that a command has loaded, and what it printed."""
    code = (
        "import sys\nfrom kb.cli.root import run\n"
        f"code = run({list(args)!r})\nsys.stdout.flush()\n"
        "print('MODULES', code, *sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)\n"
    )
    environment = {**os.environ, "KB_ROOT": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    line = next(line for line in done.stderr.splitlines() if line.startswith("MODULES"))
    return set(line.split()[2:]), int(line.split()[1])


@pytest.mark.parametrize(
    ("args", "absent"),
    [
        pytest.param(["--version"], HEAVY | {"pydantic", "rich", "jinja2", "numpy", "yaml"}, id="version"),
        pytest.param(["--help"], HEAVY | {"rich"}, id="help"),
        pytest.param(["completion", "bash"], HEAVY | {"pydantic", "rich"}, id="completion"),
        pytest.param(["status"], HEAVY | {"rich", "numpy", "jinja2"}, id="status"),
        pytest.param(["status", "--json"], HEAVY | {"rich", "numpy", "jinja2"}, id="status-json"),
        pytest.param(["list", "items"], HEAVY, id="list-without-where"),
        pytest.param(["explain", "3"], HEAVY | {"pydantic"}, id="explain"),
    ],
)
def test_a_command_loads_only_what_it_needs(base, args, absent):
    loaded, code = modules_after(*args, root=base.root)
    assert code == 0
    assert loaded & absent == set()


def test_completing_a_verb_loads_nothing_heavy(base):
    environment = {**os.environ, "_KB_COMPLETE": "bash_complete", "COMP_WORDS": "kb sta", "COMP_CWORD": "1"}
    code = "import sys\nfrom kb.cli.root import cli\ntry:\n cli.main(prog_name='kb')\nfinally:\n print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert "plain,status" in done.stdout
    assert {name.partition(".")[0] for name in done.stderr.split()} & (HEAVY | {"rich", "pydantic"}) == set()


def commands(command, path=()):
    """Every command and sub-command."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), (*path, name))


@pytest.mark.parametrize("verb", verb_names())
def test_every_verb_has_help_with_an_example(verb):
    for path, command in commands(cli):
        if path[:1] == (verb,):
            text = command.get_help(click.Context(command, info_name=" ".join(("kb", *path))))
            assert command.help, f"kb {' '.join(path)} says nothing about itself"
            if not isinstance(command, click.Group):
                example = rf"(?m)^\s+(?:\S+=\S+ )*(?:eval \"\$\()?kb (?:-C \S+ )?{verb}\b"
                assert re.search(example, text), f"kb {' '.join(path)} --help shows no example"
            for option in command.params:
                assert isinstance(option, click.Argument) or option.help or option.hidden, (
                    f"{path} {option.name}"
                )


@pytest.mark.parametrize("verb", verb_names())
def test_every_verb_answers_help_with_0(verb, kb):
    ended = kb(verb, "--help")
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        pytest.param(["statuss"], 2, "did you mean status?", id="a-misspelt-verb"),
        pytest.param(["list", "item"], 2, "items", id="a-wrong-choice"),
        pytest.param(["list"], 2, "kb --help", id="a-missing-argument"),
        pytest.param(["status", "--jsn"], 2, "--json", id="an-unknown-option"),
        pytest.param(["show", "nothing/here"], 2, "try: kb", id="an-id-that-matches-nothing"),
        pytest.param(["explain", "99"], 2, "kb explain", id="a-code-that-does-not-exist"),
        pytest.param(["-C", "/nowhere", "status"], 2, "kb init", id="no-base"),
    ],
)
def test_wrong_use_says_what_to_do(base, kb, args, code, says):
    ended = kb(*args)
    assert ended.code == code
    assert says in ended.err
    assert ended.out == ""


def test_a_bug_is_70_with_a_trace_and_no_traceback_on_the_screen(base, kb, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("kb.status.summarise", fail)
    ended = kb("status")
    assert ended.code == 70
    assert "Traceback" not in ended.err
    path = re.search(r"trace:\s+(\S+)", ended.err).group(1)
    with open(path, encoding="utf-8") as trace:  # noqa: PTH123
        assert "ZeroDivisionError" in trace.read()


def test_an_interrupt_is_130(base, kb, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("kb.status.summarise", stop)
    assert kb("status").code == 130


def test_an_error_cannot_move_the_cursor(base, kb):
    ended = kb("show", "x\x1b[2Jy")
    assert "\x1b" not in ended.err


def every_error():
    found = [KbError]
    for kind in found:
        found.extend(kind.__subclasses__())
    return found


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
def test_every_error_names_a_command_that_helps(kind, kb):
    error = kind("x: not done", cause="y", remedy="z")
    assert error.next_command.startswith("kb ")
    assert kb("explain", error.exit_code).code == 0


@pytest.mark.parametrize(
    ("codes", "wins"),
    [([0, 1, 4], 4), ([4, 3], 3), ([5, 7], 7), ([2, 6], 6), ([130, 6], 130), ([70, 130], 70), ([], 0)],
)
def test_of_several_codes_the_contract_says_which_wins(codes, wins):
    assert worst(codes) == wins


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(["list", what, "--json"], id=f"list-{what}")
        for what in ("items", "drafts", "claims", "runs", "verdicts")
    ]
    + [
        pytest.param(["query", "select 1 as one where false", "--json"], id="query"),
    ],
)
def test_an_empty_result_is_an_empty_list_and_0(base, kb, args):
    ended = kb(*args)
    assert (ended.code, ended.out, ended.err) == (0, "[]\n", "")


def test_no_color_and_pipes_are_honoured(base, kb):
    assert "\x1b" not in kb("status").out


def test_a_reader_that_goes_away_is_no_failure(base):
    command = f"'{sys.executable}' -c 'from kb.cli import main; main()' query 'from range(200000)'"
    command += " | head -1 >/dev/null; exit ${PIPESTATUS[0]}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False,
        env={**os.environ, "KB_ROOT": str(base.root)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("line", ["ingest --since 2026-06-10", "repro tangram --gpu", "sync --once"])
def test_the_three_lines_users_type_are_understood(kb, line):
    """The verb and its option exist; what they do is tested with their stages."""
    words = line.split()
    ended = kb(*words, "--help")
    assert ended.code == 0
    assert next(word for word in words if word.startswith("--")) in ended.out


def test_run_never_raises(monkeypatch):
    assert run(["--version"]) == 0
