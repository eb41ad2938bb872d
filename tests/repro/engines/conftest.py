"""A server of one's own per test, a base with claims alone, and no engines but those a test makes."""

import shutil

import pytest

from tests.repro.engines.hostile import Server
from tests.repro.engines.records import SHIPPED


@pytest.fixture
def serve():
    started = []

    def start(behave):
        started.append(Server(behave))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def base(tmp_path):
    """Only the claims that engines speak to: what was measured elsewhere shall not answer."""
    (tmp_path / "base/claims").mkdir(parents=True)
    for system in ("vllm", "eai", "sd-latency", "medium-occlubssk"):
        shutil.copy(SHIPPED / f"claims/{system}.toml", tmp_path / "base/claims")
    shutil.copy(SHIPPED / "kb.toml", tmp_path / "base/kb.toml")
    return tmp_path / "base"


@pytest.fixture
def no_engines(tmp_path, monkeypatch):
    monkeypatch.setenv("KB_ENGINES", str(tmp_path / "engines"))
    return tmp_path / "engines"
