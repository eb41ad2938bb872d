"""Public data sets: a file is kept only with the bytes on record, and what is here is not fetched again."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kb import datasets

CONTENT = b"TIMESTAMP,ContextTokens,GeneratedTokens\n0,16,1\n"
HOST = "data.example.org"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        body = self.server.answers.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A server on loopback that answers for every host, and two data sets that point at one of them."""
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.asked, httpd.answers = [], {f"/{HOST}/a.csv": CONTENT}
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    monkeypatch.setenv("KB_REPLAY", f"http://127.0.0.1:{httpd.server_address[1]}")
    monkeypatch.setenv("KB_DATA_DIR", str(tmp_path / "data"))
    folder = tmp_path / "units"
    folder.mkdir()
    head = 'title = "t"\norigin = "o"\nlicence = "MIT"\ncite = "c"\n'
    for name, data in (("toy", CONTENT), ("changed", b"other bytes")):
        digest = hashlib.sha256(data).hexdigest()
        file = f'[[file]]\npath = "{name}/a.csv"\nurl = "https://{HOST}/a.csv"\nsha256 = "{digest}"\nbytes = {len(CONTENT)}\n'
        (folder / f"{name}.toml").write_text(head + file)
    monkeypatch.setattr(datasets, "FOLDER", folder)
    datasets.datasets.cache_clear()
    yield httpd
    httpd.shutdown()
    thread.join()
    httpd.server_close()
    datasets.datasets.cache_clear()


def test_a_file_is_fetched_once_and_kept_where_it_is_listed(server, kb, tmp_path):
    assert kb("data", "list", "--json").json[1]["here"] is False
    assert kb("data", "fetch", "toy", "--json").json[0]["fetched"] == ["toy/a.csv"]
    assert (tmp_path / "data/toy/a.csv").read_bytes() == CONTENT
    assert kb("data", "fetch", "toy", "--json").json[0]["present"] == ["toy/a.csv"]
    assert len(server.asked) == 1
    assert kb("data", "list", "--json").json[1]["here"] is True


def test_bytes_that_are_not_those_on_record_are_not_kept(server, kb, tmp_path):
    ended = kb("data", "fetch", "changed")
    assert ended.code == 5
    assert "digest" in ended.err
    assert not (tmp_path / "data/changed").exists()


def test_a_file_somebody_changed_is_fetched_again(server, kb, tmp_path):
    kb("data", "fetch", "toy")
    (tmp_path / "data/toy/a.csv").write_bytes(CONTENT.replace(b"16", b"61"))
    kb("data", "fetch", "toy")
    assert (tmp_path / "data/toy/a.csv").read_bytes() == CONTENT


def test_what_cannot_be_had_ends_with_5_and_says_what_to_do(server, kb):
    server.answers.clear()
    ended = kb("data", "fetch", "toy")
    assert ended.code == 5
    assert "KB_DATA_DIR" in ended.err


def test_dry_run_asks_nobody(server, kb, tmp_path):
    assert kb("data", "fetch", "toy", "--dry-run", "--json").json[0]["fetched"] == ["toy/a.csv"]
    assert server.asked == []
    assert not (tmp_path / "data").exists()


def test_an_unknown_name_ends_with_2(kb):
    ended = kb("data", "fetch", "nothing")
    assert (ended.code, "azure-2023" in ended.err) == (2, True)


def test_every_data_set_names_its_origin_its_licence_and_a_fixed_commit(kb):
    for row in kb("data", "list", "--json").json:
        assert row["licence"]
        assert row["origin"]
        assert row["cite"]
    for one in datasets.datasets().values():
        for file in one.file:
            assert len(file.url.split("/")[5]) == 40, f"{file.path}: not at a commit"
            assert file.path.startswith(f"{one.name}/")


def test_the_digests_are_those_of_the_public_files(shared, monkeypatch):
    monkeypatch.setenv("KB_DATA_DIR", str(shared / "traces"))
    assert [file.path for one in datasets.datasets().values() for file in datasets.missing(one)] == []
