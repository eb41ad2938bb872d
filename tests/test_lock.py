"""The write lock: one holder at a time, free the moment its process dies, and whoever waits learns for whom."""

import multiprocessing
import os
import signal
import time

import pytest

from kb.errors import Busy
from kb.lock import hold, is_held, lock_folder, read_owner
from kb.store import Base
from tests.records import draft_text, put_draft

SPAWN = multiprocessing.get_context("spawn")


def hold_for_ever(root, ready):
    with hold(root, "write", "kb publish", wait_s=5):
        ready.set()
        time.sleep(60)


@pytest.fixture
def holder(base):
    ready = SPAWN.Event()
    process = SPAWN.Process(target=hold_for_ever, args=(base.root, ready))
    process.start()
    assert ready.wait(20)
    yield process
    process.kill()
    process.join()


def test_whoever_waits_learns_command_pid_and_start(base, holder):
    with pytest.raises(Busy) as caught, hold(base.root, "write", "kb move", wait_s=0.1):
        pass
    assert caught.value.exit_code == 6
    assert f"kb publish, pid {holder.pid}" in caught.value.cause


def test_a_killed_holder_frees_the_lock_at_once(base, holder):
    assert is_held(base.root, "write")
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    assert read_owner(base.root, "write").pid == holder.pid  # the record stays, the lock does not
    assert not is_held(base.root, "write")
    with hold(base.root, "write", "kb move", wait_s=0.1):
        assert read_owner(base.root, "write").what == "kb move"


def test_a_lock_nobody_took_is_free(base):
    assert not is_held(base.root, "long")
    assert read_owner(base.root, "long") is None


def test_locks_live_outside_the_tracked_files(base):
    """In the git directory where there is one, so that deleting .kb frees nothing and commits carry no lock."""
    outside = lock_folder(base.root)
    assert not outside.is_relative_to(base.root)
    (base.root / ".git").mkdir()
    assert lock_folder(base.root).is_relative_to(base.root / ".git")


def test_a_busy_base_ends_a_command_with_6(base, holder, kb, monkeypatch):
    put_draft(base, "jay/2026-06-10-kv", draft_text(("1", "arxiv:2606.06302")))
    patient = Base.writing
    monkeypatch.setattr(Base, "writing", lambda self, what: patient(self, what, wait_s=0.1))
    ended = kb("move", "jay/2026-06-10-kv", "--to", "review", "--reason", "x")
    assert ended.code == 6
    assert str(holder.pid) in ended.err
