"""Take pictures of a built site in Debian's Chromium for the documentation, wide and narrow, light and dark.

kb -C build/demo/research-kb site build --dir build/site
python scripts/site_pictures.py build/site docs/img
"""

from __future__ import annotations

import io
import shutil
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SIGHTS = {
    "light-1280": (1280, "light"),
    "dark-1280": (1280, "dark"),
    "light-390": (390, "light"),
    "dark-390": (390, "dark"),
}
PAGES = {
    "topic": ("inference/kvcache/", "#证据"),
    "figure": ("inference/kvcache/", "img[src$='.svg']"),
    "claims": ("claims/?topic=inference/kvcache", "h1"),
    "search": ("search/?q=显存", "h1"),
}
"""Name → address below the site, and what the picture begins with."""
HEIGHT = 900


def take(site: Path, out: Path) -> None:
    """Take every page in every sight."""
    from playwright.sync_api import sync_playwright

    out.mkdir(parents=True, exist_ok=True)
    handler = partial(SimpleHTTPRequestHandler, directory=str(site))
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, sync_playwright() as program:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = program.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for sight, (width, scheme) in SIGHTS.items():
            size = {"width": width, "height": HEIGHT}
            page = browser.new_page(viewport=size, color_scheme=scheme, locale="zh-CN")
            for name, (path, start) in PAGES.items():
                page.goto(f"http://127.0.0.1:{server.server_port}/{path}")
                if "?" in path:
                    page.wait_for_selector("body[data-kb-ready]")
                top = page.locator(start).first.evaluate("e => e.getBoundingClientRect().top + scrollY")
                page.evaluate(f"scrollTo(0, {max(0, top - 120)})")
                page.wait_for_timeout(300)
                shrink(page.screenshot(), out / f"{name}-{sight}.png")
            page.close()
        browser.close()
        server.shutdown()


def shrink(picture: bytes, path: Path) -> None:
    """Write a picture with 64 colours: pages of text need no more, and it stays small in git."""
    from PIL import Image

    Image.open(io.BytesIO(picture)).convert("RGB").quantize(64).save(path, optimize=True)


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]))
