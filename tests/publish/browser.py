"""A real browser for the site's tests: Debian's Chromium, driven over its own protocol, no request past loopback."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def require_browser() -> str:
    """Path of the browser; skips where there is none, fails where one was promised."""
    if CHROMIUM is None:
        if os.environ.get("KB_REQUIRE_BROWSER") == "1":
            pytest.fail("KB_REQUIRE_BROWSER=1 and no Chromium is installed")
        pytest.skip("no Chromium here; KB_REQUIRE_BROWSER=1 makes this a failure")
    return CHROMIUM


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextmanager
def served(folder):
    """A folder on a free port of loopback; yields its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@contextmanager
def browsing():
    """A Chromium that is closed again."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as program:
        browser = program.chromium.launch(executable_path=require_browser(), args=["--no-sandbox"])
        yield browser
        browser.close()
