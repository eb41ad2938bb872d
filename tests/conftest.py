"""What all tests share: a base of their own, nothing of the user's settings, the program as a function."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

# the same examples every time, and no verdict on how fast this machine draws them: `make soak` runs the long counts
hypothesis.settings.register_profile(
    "kb",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("kb")
KEPT = {"KB_REQUIRE_BROWSER"}
NOW = "2026-07-02T03:05:00Z"


@pytest.fixture(autouse=True)
def _nothing_of_the_user(tmp_path_factory, monkeypatch):
    """Settings, locks and git identity come from a folder of this test, the clock stands still."""
    for name in [n for n in os.environ if n.startswith("KB_") and n not in KEPT]:
        monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("KB_CONFIG_DIR", str(home / "config"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    monkeypatch.setenv("KB_NOW", NOW)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "a reviewer")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "reviewer@example.org")


@dataclass
class Ended:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def kb(capsys):
    """Run the program in this process: ``kb("list", "items", "--json").json``."""
    from kb.cli.root import run

    def call(*args):
        capsys.readouterr()
        code = run([str(arg) for arg in args])
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return call


@pytest.fixture
def base(tmp_path, monkeypatch):
    """A new base, found through KB_ROOT."""
    from kb.starter import make_base
    from kb.store import Base

    root = tmp_path / "base"
    make_base(root, "en")
    monkeypatch.setenv("KB_ROOT", str(root))
    return Base(root)


@pytest.fixture
def shared():
    """Material that is no part of the product: tests that use it are skipped without it."""
    folder = Path(__file__).resolve().parent.parent.parent / "shared"
    if not folder.is_dir():
        pytest.skip("../shared is absent")
    return folder
