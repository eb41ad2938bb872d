"""What goes over HTTP: notifications to the user's webhook and program, the remote's clock, a credential that only reads."""

import datetime as dt
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import format_datetime
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.sync.test_doctor import doctor
from tests.sync.world import PAGE, World, page


@dataclass
class Host:
    """A git host of one's own: repositories over the dumb protocol, webhooks, a clock that can be wrong."""

    address: str = ""
    clock_off: dt.timedelta = dt.timedelta()
    told: list[dict] = field(default_factory=list)
    status: int = 204

    @property
    def endpoint(self) -> str:
        return self.address.removeprefix("http://")


@pytest.fixture
def host(world: World) -> Iterator[Host]:
    here = Host()

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(world.root))

        def date_time_string(self, timestamp=None):
            if timestamp is not None:
                return super().date_time_string(timestamp)
            return format_datetime(dt.datetime.now(dt.UTC) + here.clock_off, usegmt=True)

        def do_GET(self):
            if "git-receive-pack" in self.path:
                self.send_error(403, "this token may read only")
                return
            super().do_GET()

        def do_POST(self):
            here.told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(here.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    here.address = f"http://127.0.0.1:{server.server_port}"
    yield here
    server.shutdown()
    server.server_close()
    thread.join()


def hooked(host: Host) -> dict[str, str]:
    return {"KB_WEBHOOK": f"{host.address}/hook", "KB_ALLOW_PRIVATE": host.endpoint}


def verdicts(outcome: str) -> str:
    return (
        json.dumps({"system": "eai", "verdicts": [{"claim": "eai/evict-14400", "verdict": outcome}]}) + "\n"
    )


def events(host: Host) -> list[tuple[str, str]]:
    return [
        (e["event"], e.get("claim", e.get("path", ""))) for document in host.told for e in document["events"]
    ]


def test_a_new_verdict_and_a_contradiction_are_told_once(world: World, host: Host):
    world.write("verdicts/eai.json", verdicts("holds"))
    world.sync(env=hooked(host))
    world.write("verdicts/eai.json", verdicts("contradicted"))
    world.sync(env=hooked(host))
    world.sync(env=hooked(host))
    assert events(host) == [("new-verdict", "eai/evict-14400"), ("contradiction", "eai/evict-14400")]
    assert host.told[1]["events"][0]["was"] == "holds"
    assert host.told[1]["branch"] == "main"


def test_a_held_block_is_told(world: World, host: Host):
    world.push_edit({PAGE: page("| a person's words |")})
    world.write(PAGE, page("| new |", run="r2"))
    world.sync(code=3, env=hooked(host))
    assert events(host) == [("held-block", PAGE)]


def test_a_failed_sync_is_told(world: World, host: Host):
    world.write("inbox/jay/2026-07-02-x.md", "# x\n")
    world.remote.rename(world.root / "gone.git")
    world.sync(code=None, env=hooked(host))
    assert events(host) == [("failed-sync", "")]


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_every_answer_of_success_is_one(world: World, host: Host, status: int):
    """Slack says 200, Discord 204, queues 202."""
    host.status = status
    world.write("verdicts/eai.json", verdicts("holds"))
    assert not [note for note in world.sync(env=hooked(host))["notes"] if "webhook" in note]


@pytest.mark.parametrize("status", [404, 500])
def test_a_webhook_that_fails_is_a_note_and_the_sync_succeeds(world: World, host: Host, status: int):
    host.status = status
    world.write("verdicts/eai.json", verdicts("holds"))
    report = world.sync(env=hooked(host))
    assert [note for note in report["notes"] if "webhook not told" in note]
    assert world.changed() == {"verdicts/eai.json"}
    assert len(host.told) == 1, "a POST that may have been taken is not repeated"


def test_a_private_webhook_needs_the_users_leave(world: World, host: Host):
    """A tracked file can name no webhook, and an address inside the network is refused unless the user exempts it."""
    world.write("verdicts/eai.json", verdicts("holds"))
    report = world.sync(env={"KB_WEBHOOK": f"{host.address}/hook"})
    assert [note for note in report["notes"] if "webhook not told" in note]
    assert not host.told


def program(world: World, script: str) -> Path:
    path = world.root / "tell me"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_program_gets_the_document_on_its_standard_input(world: World):
    told = world.root / "told.json"
    path = program(world, f"cat > '{told}'")
    world.write("verdicts/eai.json", verdicts("contradicted"))
    world.sync(env={"KB_NOTIFY": str(path), "KB_ALLOW": str(path)})
    assert json.loads(told.read_text())["events"][0]["event"] == "contradiction"


def test_a_program_off_the_allow_list_is_not_run(world: World):
    told = world.root / "told.json"
    path = program(world, f"cat > '{told}'")
    world.write("verdicts/eai.json", verdicts("holds"))
    report = world.sync(env={"KB_NOTIFY": str(path)})
    assert [note for note in report["notes"] if "not called" in note]
    assert not told.exists()


def test_a_program_that_fails_is_a_note(world: World):
    path = program(world, "exit 9")
    world.write("verdicts/eai.json", verdicts("holds"))
    report = world.sync(env={"KB_NOTIFY": str(path), "KB_ALLOW": str(path)})
    assert [note for note in report["notes"] if "ended with 9" in note]


# The doctor


def over_http(world: World, host: Host) -> dict[str, str]:
    world.git("update-server-info", at=world.remote)
    return {"KB_REMOTE": f"{host.address}/remote.git", "KB_ALLOW_PRIVATE": host.endpoint}


@pytest.mark.parametrize(
    ("off_s", "state"), [(0, "ok"), (30, "ok"), (600, "fail"), (-600, "fail"), (86_400, "fail")]
)
def test_row_38_the_clock_is_held_against_the_remotes(world: World, host: Host, off_s: int, state: str):
    host.clock_off = dt.timedelta(seconds=off_s)
    [finding] = doctor(world, "clock", env=over_http(world, host))["clock"]
    assert finding["state"] == state
    assert bool(finding["fix"]) == (state == "fail")


def test_a_credential_that_may_only_read_is_a_finding(world: World, host: Host):
    [finding] = doctor(world, "remote", env=over_http(world, host))["remote"]
    assert (finding["state"], "takes no push" in finding["evidence"]) == ("fail", True)
    assert "write access" in finding["fix"]
