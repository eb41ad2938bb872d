"""Running git so that nothing of the caller's set-up can change what it does.

Every ``GIT_*`` variable is dropped (a hook's ``GIT_DIR`` would point at another repository), the user's and the
system's configuration are not read, hooks, prompts, signing and automatic housekeeping are off, messages are English.
Names are bytes separated by NUL on every listing, so that Chinese names arrive as they are.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kb.errors import CannotRun, KbError, RemoteRefused

MIN_VERSION = (2, 38)
"""``merge-tree --write-tree``, ``core.fsync`` and ``safe.directory`` of the command scope all exist from here on."""
LOCAL_TIMEOUT_S = 120.0
"""A local git command that takes longer hangs."""
NETWORK_TIMEOUT_S = 300.0
"""Fetch or push of one batch."""
FIXED = {
    "core.hooksPath": os.devnull,
    "core.fsync": "committed",
    "core.fsyncMethod": "batch",
    "core.autocrlf": "false",
    "core.quotePath": "false",
    "core.precomposeUnicode": "false",
    "core.askPass": "",
    "commit.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "fetch.writeCommitGraph": "false",
    "submodule.recurse": "false",
    "protocol.allow": "never",
    "protocol.file.allow": "always",
    "protocol.ssh.allow": "always",
    "protocol.git.allow": "always",
    "protocol.http.allow": "always",
    "protocol.https.allow": "always",
}
"""Settings of every call; no protocol that runs a program is allowed."""


class GitFailed(KbError):
    """A git command ended with an error."""

    exit_code = 5

    def __init__(self, args: Sequence[str], code: int, message: str) -> None:
        from kb.sync.refusal import explain

        self.code = code
        self.message = message.strip()
        why = explain(self.message)
        self.kind = why.kind
        super().__init__(
            f"git {args[0]}: ended with {code}",
            cause=why.cause,
            remedy=why.remedy,
            next_command=why.next_command,
        )


@dataclass(frozen=True)
class Git:
    """git in one repository."""

    directory: Path
    """A git directory (bare), or the top of a working tree."""
    bare: bool = True
    """True: ``--git-dir``; False: ``-C``."""
    config: Mapping[str, str] = field(default_factory=dict)
    """More settings; they travel in the environment, so a token never shows in a process list."""

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of a call: the caller's without ``GIT_*``, with our settings."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        settings = {**FIXED, **self.config}
        kept |= {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_ADVICE": "0",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_CONFIG_COUNT": str(len(settings)),
            "LC_ALL": "C",
        }
        if "core.sshCommand" not in settings:
            kept["GIT_SSH_COMMAND"] = "ssh -oBatchMode=yes"
        for number, (name, value) in enumerate(settings.items()):
            kept[f"GIT_CONFIG_KEY_{number}"] = name
            kept[f"GIT_CONFIG_VALUE_{number}"] = value
        return kept | dict(extra or {})

    def run(
        self,
        *args: str,
        given: bytes | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float = LOCAL_TIMEOUT_S,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git and return whatever it ended with.

        Args:
            args: Arguments after the place.
            given: Bytes for its standard input.
            env: Variables to add.
            timeout_s: Seconds before it is killed.

        Raises:
            CannotRun: git is not installed, or hangs.
        """
        place = ["--git-dir", str(self.directory)] if self.bare else ["-C", str(self.directory)]
        try:
            return subprocess.run(
                ["git", *place, *args],
                input=given if given is not None else b"",
                capture_output=True,
                env=self.environment(env),
                timeout=timeout_s,
                check=False,
            )
        except FileNotFoundError as error:
            raise CannotRun(
                "git: not found", cause="no program git on PATH", remedy="install git 2.38 or newer"
            ) from error
        except subprocess.TimeoutExpired as error:
            raise RemoteRefused(
                f"git {args[0]}: gave no answer in {timeout_s:.0f} s",
                cause="the remote or the disk hangs",
                remedy="nothing was lost; try again when it answers",
                next_command="kb doctor",
            ) from error

    def output(self, *args: str, given: bytes | None = None, env: Mapping[str, str] | None = None) -> bytes:
        """Run git and return its output.

        Raises:
            GitFailed: It ended with an error.
        """
        done = self.run(*args, given=given, env=env)
        if done.returncode != 0:
            raise GitFailed(args, done.returncode, done.stderr.decode("utf-8", "replace"))
        return done.stdout

    def text(self, *args: str, given: bytes | None = None, env: Mapping[str, str] | None = None) -> str:
        """Run git and return its output as text without the final newline; errors as in `output`."""
        return os.fsdecode(self.output(*args, given=given, env=env)).rstrip("\n")

    def ok(self, *args: str, env: Mapping[str, str] | None = None) -> bool:
        """Run git and say whether it ended with 0."""
        return self.run(*args, env=env).returncode == 0

    def maybe(self, *args: str, env: Mapping[str, str] | None = None) -> str:
        """Output of git as text, empty where it ended with an error."""
        done = self.run(*args, env=env)
        return os.fsdecode(done.stdout).rstrip("\n") if done.returncode == 0 else ""


class Entry(NamedTuple):
    """One path of a tree."""

    mode: str
    """``100644``, ``100755``, ``120000`` (symbolic link) or ``160000`` (submodule)."""
    oid: str


Tree = dict[str, Entry]
"""Path below the base → entry."""


def read_tree(git: Git, commit: str, prefix: str, *, env: Mapping[str, str] | None = None) -> Tree:
    """List a commit's files below ``prefix`` (``""`` or ``"folder/"``); keys are relative to it."""
    where = [prefix.rstrip("/") + "/"] if prefix else []
    raw = os.fsdecode(git.output("ls-tree", "-r", "-z", "--full-tree", commit, *where, env=env))
    cut = len(prefix)
    found: Tree = {}
    for record in raw.split("\0"):
        if record:
            meta, name = record.split("\t", 1)
            found[name[cut:]] = Entry(meta[:6], meta[meta.rindex(" ") + 1 :])
    return found


def read_blobs(git: Git, oids: Sequence[str], *, env: Mapping[str, str] | None = None) -> dict[str, bytes]:
    """Contents of blobs by object id, in one call."""
    wanted = list(dict.fromkeys(oids))
    if not wanted:
        return {}
    raw = git.output("cat-file", "--batch", given="".join(f"{oid}\n" for oid in wanted).encode(), env=env)
    found: dict[str, bytes] = {}
    at = 0
    for oid in wanted:
        end = raw.index(b"\n", at)
        head = raw[at:end].split(b" ")
        if len(head) != 3 or head[1] != b"blob":  # noqa: PLR2004  oid, type, size
            raise GitFailed(["cat-file"], 128, f"{oid}: {head[-1].decode()}: bad object")
        size = int(head[2])
        found[oid] = raw[end + 1 : end + 1 + size]
        at = end + 1 + size + 1
    return found


def version() -> tuple[int, ...]:
    """Version of git as installed, ``(2, 39, 5)``.

    Raises:
        CannotRun: git is not installed.
    """
    import re

    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", Git(Path(), bare=False).text("--version"))
    return tuple(int(part or 0) for part in found.groups()) if found else (0,)
