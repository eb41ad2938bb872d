"""A web of one's own on loopback: real sockets, scripted answers, every request recorded."""

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class Asked:
    """One request as it arrived."""

    path: str
    headers: dict

    @property
    def agent(self):
        return self.headers.get("user-agent", "")


@dataclass
class Web:
    """Answers by path (query included first, then without it); an answer is (status, headers, body) or a list of them."""

    url: str
    answers: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)

    def serve(self, path, body=b"", status=200, **headers):
        """Answer a path always the same; a second call with the same path replaces the first."""
        data = body.encode() if isinstance(body, str) else body
        self.answers[path] = (status, {k.replace("_", "-"): v for k, v in headers.items()}, data)
        return self.url + path

    def then(self, path, *answers):
        """Answer a path with one answer after the other; the last one stays."""
        self.answers[path] = list(answers)
        return self.url + path

    def answer(self, path, headers):
        self.asked.append(Asked(path, headers))
        found = self.answers.get(path, self.answers.get(path.partition("?")[0]))
        if callable(found):
            found = found(path, headers)
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        return found or (404, {}, b"nothing here")


@pytest.fixture
def web(monkeypatch):
    """A server on 127.0.0.1 that `kb` may reach."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            found = served.answer(self.path, {k.lower(): v for k, v in self.headers.items()})
            status, headers, body = found
            if callable(body):
                body(self)
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if "content-length" not in {name.lower() for name in headers}:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815  the name http.server calls

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    served = Web(f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.setenv("KB_ALLOW_PRIVATE", f"127.0.0.1:{server.server_address[1]}")
    yield served
    server.shutdown()
    server.server_close()


@pytest.fixture
def follow(base):
    """Follow sources in the test's base: ``follow("blog", kind="feed", url=…)``; shipped ones are gone."""
    import tomllib

    folder = base.root / "sources"
    for path in folder.glob("*.toml"):
        path.unlink()

    def write(name, **values):
        lines = [f"{key} = {_toml(value)}" for key, value in {"why": "a test", **values}.items()]
        folder.mkdir(exist_ok=True)
        text = "\n".join(lines) + "\n"
        tomllib.loads(text)
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")

    return write


def _toml(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(part) for part in value) + "]"
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


@pytest.fixture
def items(kb):
    """The items of the base by id, as `kb list items --json` gives them."""

    def read():
        return {row["id"]: row for row in kb("list", "items", "--json").json}

    return read


@pytest.fixture
def snapshot(base):
    """Every tracked file of the base and its bytes."""

    def take():
        files = (path for path in base.root.rglob("*") if path.is_file())
        found = {path.relative_to(base.root).as_posix(): path.read_bytes() for path in files}
        return {name: data for name, data in found.items() if not name.startswith(".kb/")}

    return take
