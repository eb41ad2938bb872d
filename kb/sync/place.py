"""Where a base stands: its clone, its folder in the repository, the remote and the branch sync pushes to.

The remote is never named by a tracked file: it comes from the user (``KB_REMOTE`` or the user's own settings) or from
the clone's own git configuration; ``kb.toml`` may pick one of the clone's remotes by name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kb.config import UserSettings
from kb.errors import NeedsPerson, WrongUse
from kb.files import sha256
from kb.store import Base
from kb.sync.git import Git, GitFailed

CARRIED_CONFIG = r"^(http\..*|credential\..*|core\.sshcommand|url\..*\.insteadof|url\..*\.pushinsteadof)$"
"""Settings of the clone's own configuration that reaching the remote may need."""


@dataclass(frozen=True)
class Place:
    """One base, its clone and its remote."""

    base: Base
    clone: Git | None
    """The clone the base lies in; None where the base is in no git repository."""
    prefix: str
    """Folder of the base in the repository, ``""`` or ``"folder/"``."""
    objects: Path | None
    """The clone's objects, read beside our own where its HEAD holds something unpushed."""
    head: str
    """Commit of the clone's HEAD; empty where there is none."""
    url: str
    push_url: str
    branch: str
    tip: str
    """What the remote's branch held when it was asked."""
    owned: bool
    config: dict[str, str] = field(default_factory=dict)
    """Settings to reach the remote with."""

    @property
    def folder(self) -> Path:
        """Sync's own files in the cache of the base."""
        return self.base.cache / "sync"

    @property
    def private(self) -> Path:
        """The private bare clone; another remote has another one."""
        return self.folder / f"{sha256(self.url.encode())[:12]}.git"

    @property
    def both(self) -> dict[str, str]:
        """Variables under which git reads the clone's objects too; never used for a write."""
        return {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self.objects)} if self.objects else {}

    def filters_here(self, paths: Sequence[str]) -> dict[str, dict[str, str]]:
        """Filter attributes of repository paths as the clone's own files give them, committed or not."""
        from kb.sync.commit import parse_attributes

        if self.clone is None or not paths:
            return {}
        given = b"\0".join(os.fsencode(path) for path in paths) + b"\0"
        return parse_attributes(self.clone.output("check-attr", "-z", "--stdin", "filter", given=given))


def find_clone(base: Base) -> tuple[Git, str] | None:
    """The clone a base lies in and the base's folder below its top; None outside git.

    Raises:
        GitFailed: git refuses to open it, for example because another user owns it.
    """
    git = Git(base.root, bare=False, config=_safe_directory(base.root))
    if not any((folder / ".git").exists() for folder in (base.root, *base.root.parents)):
        return None
    top = git.text("rev-parse", "--show-toplevel")
    prefix = git.text("rev-parse", "--show-prefix")
    return Git(Path(top), bare=False, config=git.config), prefix


def _safe_directory(root: Path) -> dict[str, str]:
    """The folder of another user that this user's own configuration declares safe; it is not read otherwise."""
    import subprocess

    try:
        done = subprocess.run(
            ["git", "config", "--global", "-z", "--get-all", "safe.directory"],
            capture_output=True,
            env={k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k == "GIT_CONFIG_GLOBAL"},
            check=False,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    found = [os.fsdecode(value) for value in done.stdout.split(b"\0") if value]
    above = {os.fspath(folder) for folder in (root, *root.parents)}
    fitting = [entry for entry in found if entry == "*" or os.path.normpath(entry) in above]
    return {"safe.directory": fitting[-1]} if fitting else {}


def find_place(base: Base, user: UserSettings) -> Place:
    """Find clone, remote and branch, and ask the remote for its tip.

    Raises:
        WrongUse: No remote is known.
        NeedsPerson: The remote has no such branch.
        GitFailed: The remote cannot be reached.
    """
    found = find_clone(base)
    clone, prefix = found or (None, "")
    url, push_url = _addresses(base, user, clone)
    config = _settings(user, clone)
    branch, tip = _branch(user, clone, Git(base.root, bare=False, config=config), url)
    top = str(clone.directory if clone else base.root)
    owned = any(Path(entry).expanduser().resolve() == Path(top).resolve() for entry in user.owned)
    head = clone.maybe("rev-parse", "--verify", "--quiet", "HEAD^{commit}") if clone else ""
    objects = clone.maybe("rev-parse", "--path-format=absolute", "--git-path", "objects") if clone else ""
    return Place(
        base=base, clone=clone, prefix=prefix, objects=Path(objects) if objects else None, head=head, url=url,
        push_url=push_url, branch=branch, tip=tip, owned=owned, config=config,
    )  # fmt: skip


def _addresses(base: Base, user: UserSettings, clone: Git | None) -> tuple[str, str]:
    names = clone.maybe("remote").splitlines() if clone else []
    wanted = user.remote or base.settings.remote
    if user.remote and user.remote not in names:
        address = _absolute(user.remote, Path.cwd())
        return address, address
    if not wanted and clone is not None:
        current = clone.maybe("symbolic-ref", "--quiet", "--short", "HEAD")
        followed = clone.maybe("config", f"branch.{current}.remote") if current else ""
        wanted = followed if followed in names else "origin" if "origin" in names else ""
        wanted = wanted or (names[0] if len(names) == 1 else "")
    if clone is None or wanted not in names:
        known = ", ".join(names) or "none"
        raise WrongUse(
            f"{base.root}: no remote to sync with",
            cause=f"the clone's remotes are: {known}" if clone else "the base is in no git repository",
            remedy="git remote add origin ADDRESS, or name one with KB_REMOTE",
            next_command="kb doctor",
        )
    top = clone.directory
    fetch = clone.text("config", f"remote.{wanted}.url")
    push = clone.maybe("config", f"remote.{wanted}.pushurl") or fetch
    return _absolute(fetch, top), _absolute(push, top)


def _absolute(address: str, top: Path) -> str:
    """A relative local path is meant from the clone; every other address stays as it is."""
    if "://" in address or (":" in address.split("/", 1)[0]):
        return address
    return str((top / Path(address).expanduser()).resolve())


def _settings(user: UserSettings, clone: Git | None) -> dict[str, str]:
    config: dict[str, str] = {}
    if clone is not None:
        raw = clone.run("config", "--local", "--includes", "-z", "--get-regexp", CARRIED_CONFIG).stdout
        for record in raw.split(b"\0"):
            name, _, value = record.partition(b"\n")
            if name:
                config[os.fsdecode(name)] = os.fsdecode(value)
    if user.ssh_command:
        config["core.sshCommand"] = user.ssh_command
    if user.credential_helper:
        config["credential.helper"] = user.credential_helper
    if user.proxy:
        config["http.proxy"] = user.proxy
    return config


def _branch(user: UserSettings, clone: Git | None, git: Git, url: str) -> tuple[str, str]:
    """The branch and its tip: what the user set, the remote's default, what the clone follows, the only one."""
    done = git.run("ls-remote", "--symref", url, "HEAD", "refs/heads/*")
    if done.returncode != 0:
        raise GitFailed(["ls-remote", url], done.returncode, done.stderr.decode("utf-8", "replace"))
    default, tips = "", {}
    for line in os.fsdecode(done.stdout).splitlines():
        value, _, name = line.partition("\t")
        if value.startswith("ref: ") and name == "HEAD":
            default = value.removeprefix("ref: refs/heads/")
        elif name.startswith("refs/heads/"):
            tips[name.removeprefix("refs/heads/")] = value
    current = clone.maybe("symbolic-ref", "--quiet", "--short", "HEAD") if clone else ""
    followed = clone.maybe("config", f"branch.{current}.merge") if clone and current else ""
    choices = [user.branch] if user.branch else [default, followed.removeprefix("refs/heads/"), current]
    for name in choices:
        if name in tips:
            return name, tips[name]
    if len(tips) == 1 and not user.branch:
        return next(iter(tips.items()))
    raise NeedsPerson(
        f"{url}: no branch to sync with",
        cause=f"its branches are: {', '.join(sorted(tips)) or 'none, it is empty'}",
        remedy="push the first commit by hand, or name the branch with KB_BRANCH",
        next_command=f"git push -u origin {user.branch or current or 'main'}",
    )


def shown(url: str) -> str:
    """A remote's address without the password it may hold."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}" if mark and "@" in rest.split("/")[0] else url
