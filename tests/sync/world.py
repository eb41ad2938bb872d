"""A remote, a clone with a knowledge base in it, and a person in another clone. Real git, nothing simulated."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from kb.cli.root import run
from kb.markers import begin_marker, end_marker

KB = [sys.executable, "-c", "import sys; from kb.cli import main; sys.exit(main())"]
PAGE = "published/inference/kvcache/index.md"
BLOCK = "inference/kvcache/evidence"


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "KB_"))}


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """The process's environment, replaced for a while."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@dataclass
class World:
    """Where everything lies; ``prefix`` puts the base into a folder of the repository."""

    root: Path
    prefix: str = ""
    config: dict[str, str] = field(default_factory=dict)

    @property
    def remote(self) -> Path:
        return self.root / "remote.git"

    @property
    def here(self) -> Path:
        """Clone in which kb runs."""
        return self.root / "here"

    @property
    def there(self) -> Path:
        """Clone of another person."""
        return self.root / "there"

    @property
    def base(self) -> Path:
        return self.here / self.prefix

    @property
    def environment(self) -> dict[str, str]:
        env = clean_environment()
        env |= {
            "HOME": str(self.root / "home"), "KB_CONFIG_DIR": str(self.root / "home/config"),
            "PYTHONPATH": str(Path(__file__).parents[2]), "GIT_AUTHOR_NAME": "person",
            "GIT_AUTHOR_EMAIL": "person@example.org", "GIT_COMMITTER_NAME": "person",
            "GIT_COMMITTER_EMAIL": "person@example.org", "GIT_CONFIG_NOSYSTEM": "1",
        }  # fmt: skip
        return env

    def git(self, *args: str, at: Path | None = None, check: bool = True, given: str | None = None) -> str:
        done = subprocess.run(
            ["git", "-C", str(at or self.here), *args],
            capture_output=True, text=True, check=False, env=self.environment, input=given, timeout=60,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"git {args}: {done.stderr}"
        return done.stdout.strip()

    def kb_environment(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        return self.environment | {"KB_NOW": "2026-12-01T00:00:00Z", "KB_SYNC_TRIES": "4"} | dict(env or {})

    def kb(
        self, *args: str, code: int | None = 0, env: Mapping[str, str] | None = None, at: Path | None = None
    ):
        """Run kb in this process, as the console script would."""
        out, err = io.StringIO(), io.StringIO()
        with environment(self.kb_environment(env)), redirect_stdout(out), redirect_stderr(err):
            ended = run(["-C", str(at or self.base), *args])
        done = subprocess.CompletedProcess(args, ended, out.getvalue(), err.getvalue())
        assert code is None or ended == code, f"kb {args}: {ended}\n{done.stdout}\n{done.stderr}"
        return done

    def start_kb(self, *args: str, env: Mapping[str, str] | None = None, at: Path | None = None):
        """Start kb as a process of its own."""
        return subprocess.Popen(
            [*KB, "-C", str(at or self.base), *args], cwd=self.root, env=self.kb_environment(env),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def sync(
        self, *args: str, code: int | None = 0, env: Mapping[str, str] | None = None, at: Path | None = None
    ):
        done = self.kb("sync", "--once", "--json", *args, code=code, env=env, at=at)
        return json.loads(done.stdout) if done.stdout else {"stderr": done.stderr, "exit": done.returncode}

    def write(self, path: str, text: str | bytes, at: Path | None = None) -> Path:
        place = (at or self.here) / self.prefix / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)
        return place

    def read(self, path: str, at: Path | None = None) -> str:
        return ((at or self.here) / self.prefix / path).read_text(encoding="utf-8")

    def push_edit(self, files: Mapping[str, str | bytes | None], message: str = "a person's edit") -> str:
        """The other person changes files and pushes; None removes one."""
        self.git("pull", "--quiet", "--rebase", at=self.there)
        for path, text in files.items():
            if text is None:
                self.git("rm", "--quiet", self.prefix + path, at=self.there)
            else:
                self.write(path, text, at=self.there)
                self.git("add", "--", self.prefix + path, at=self.there)
        self.git("commit", "--quiet", "-m", message, at=self.there)
        self.git("push", "--quiet", at=self.there)
        return self.git("rev-parse", "HEAD", at=self.there)

    def pull(self, at: Path | None = None) -> None:
        self.git("pull", "--quiet", "--rebase", at=at or self.there)

    # The remote

    def tip(self) -> str:
        return self.git("rev-parse", "refs/heads/main", at=self.remote)

    def files(self, commit: str = "main") -> set[str]:
        raw = subprocess.run(
            ["git", "-C", str(self.remote), "ls-tree", "-r", "-z", "--name-only", commit],
            capture_output=True, check=True, env=self.environment,
        ).stdout  # fmt: skip
        names = {os.fsdecode(name) for name in raw.split(b"\0") if name}
        return {name.removeprefix(self.prefix) for name in names if name.startswith(self.prefix)}

    def show(self, path: str, commit: str = "main") -> str:
        return self.show_bytes(path, commit).decode()

    def show_bytes(self, path: str, commit: str = "main") -> bytes:
        done = subprocess.run(
            ["git", "-C", str(self.remote), "cat-file", "blob", f"{commit}:{self.prefix}{path}"],
            capture_output=True, check=False, env=self.environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def changed(self, commit: str = "main") -> set[str]:
        """Paths a commit of the remote changed, against its first parent."""
        raw = self.git(
            "diff-tree", "-r", "--name-only", "-z", "--no-renames", f"{commit}^", commit, at=self.remote
        )
        return {name.removeprefix(self.prefix) for name in raw.split("\0") if name}

    def count(self) -> int:
        return int(self.git("rev-list", "--count", "main", at=self.remote))

    def subjects(self) -> list[str]:
        return self.git("log", "--format=%s", "main", at=self.remote).splitlines()

    def hook(self, name: str, script: str) -> Path:
        """Install a hook on the server."""
        path = self.remote / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def moving_remote(self, times: int, path: str = "", text: str = "") -> None:
        """The branch moves by one commit of a person while each of the next ``times`` pushes is under way.

        The commit writes ``text`` to ``path``, or a new file.
        """
        content = self.root / "moving.text"
        content.write_text(text, encoding="utf-8")
        counter = self.root / "moves"
        counter.write_text(str(times), encoding="utf-8")
        self.hook(
            "pre-receive",
            f"""unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
n=$(cat '{counter}'); [ "$n" -gt 0 ] || exit 0
echo $((n - 1)) > '{counter}'
name='{path}'; [ -n "$name" ] || name="human-$n.txt"
if [ -n '{path}' ]; then blob=$(git hash-object -w '{content}'); else blob=$(echo "move $n" | git hash-object -w --stdin); fi
GIT_INDEX_FILE='{self.root}/moving.index'; export GIT_INDEX_FILE; rm -f "$GIT_INDEX_FILE"
git read-tree main
git update-index --add --cacheinfo "100644,$blob,{self.prefix}$name"
commit=$(git write-tree | xargs -I{{}} git -c user.name=p -c user.email=p@example.org commit-tree {{}} -p main -m "person $n")
git update-ref refs/heads/main "$commit"
exit 0""",
        )

    def protect(self) -> None:
        """The server takes no push to main, as hosts with protected branches say it."""
        self.hook(
            "update",
            'case "$1" in refs/heads/main) echo "error: GH006: Protected branch update failed for $1." >&2; exit 1;; esac',
        )

    def refuse(self, pattern: str) -> None:
        """The server refuses every commit to main that adds or changes a path that matches."""
        self.hook(
            "update",
            'case "$1" in refs/heads/main) ;; *) exit 0;; esac\n'
            f'if git diff --name-only "$2" "$3" | grep -q "{pattern}"; then echo "policy: {pattern} is not wanted" >&2; '
            "exit 1; fi",
        )

    def private(self) -> Path:
        [found] = (self.base / ".kb/sync").glob("*.git")
        return found


def page(evidence: str, *, intro: str = "Introduction by a person.", run: str = "r1") -> str:
    inner = evidence.encode() + b"\n"
    begin, end = begin_marker(BLOCK, run, inner).decode(), end_marker(BLOCK).decode()
    return f"# KV cache\n\n{intro}\n\n{begin}\n{evidence}\n{end}\n\nThe end.\n"


def make_world(root: Path, prefix: str = "") -> World:
    """A remote whose branch main holds a small base, cloned twice."""
    world = World(root, prefix)
    (root / "home/config").mkdir(parents=True)
    env = world.environment
    call = lambda *args: subprocess.run(["git", *args], check=True, env=env, capture_output=True)  # noqa: E731
    call("init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(world.remote))
    call("-C", str(world.remote), "config", "core.logAllRefUpdates", "true")
    call("init", "--quiet", "--template=", "--initial-branch=main", str(world.here))
    world.git("remote", "add", "origin", str(world.remote))
    world.write("kb.toml", 'zone = "Asia/Shanghai"\nlanguage = "zh"\n')
    world.write(".gitignore", ".kb/\n")
    world.write("items/2026-06.jsonl", '{"id":"arxiv:2606.00001"}\n')
    world.write("inbox/jay/2026-06-10-brief.md", "# a draft\n")
    world.write(PAGE, page("| old |"))
    world.write(f"published/.blocks/{BLOCK}.md", "| old |\n")
    world.write("verdicts/eai.json", '{"system": "eai", "verdicts": []}\n')
    (world.here / "README.md").write_text("repository\n", encoding="utf-8")
    world.git("add", "--all")
    world.git("commit", "--quiet", "-m", "start")
    world.git("push", "--quiet", "--set-upstream", "origin", "main")
    call("clone", "--quiet", "--template=", str(world.remote), str(world.there))
    return world


def copy_world(template: World, root: Path) -> World:
    """The same world in another place; making one anew takes ten times as long."""
    shutil.copytree(template.root, root, dirs_exist_ok=True, symlinks=True)
    for config in root.glob("*/.git/config"):
        text = config.read_text(encoding="utf-8")
        config.write_text(text.replace(str(template.root), str(root)), encoding="utf-8")
    return World(root, template.prefix)
