"""`kb site`: the published base as a site that asks no other host for anything.

Pages are staged (`kb.publish.stage`), turned into HTML by mkdocs-material from a configuration made here, and joined by
feeds, JSON, ``llms.txt``, Markdown twins and the search index. What a page shows is decided by files and, for expired
product states, by the day; nothing else reads a clock, so two builds of a day are equal byte for byte.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kb import clock
from kb.errors import CannotRun, KbError, WrongUse
from kb.publish.site_content import make_site
from kb.publish.site_model import Site, gather
from kb.store import Base

MARK = ".kb-site"
"""File by which a folder is known to be a site that kb built and may replace."""
BUILD_TIMEOUT_S = 600
MATERIAL_NEEDED = "mkdocs-material is not installed"
SITEMAP = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>\n'
)
LANGUAGES = ("zh", "en")


@dataclass(frozen=True)
class Built:
    """What a build made."""

    folder: Path
    pages: int
    files: int


def build_site(
    base: Base, folder: Path, *, address: str = "", stale: Mapping[str, Iterable[str]] | None = None
) -> Built:
    """Build the site of a base.

    Args:
        base: The knowledge base; published pages, not drafts in other stages, appear.
        folder: Where the site goes; made, or replaced if kb built it.
        address: Where it will be served, for absolute links in feeds; empty for relative ones.
        stale: Claim → causes that `kb stale` found.

    Raises:
        WrongUse: ``folder`` holds something else.
        CannotRun: mkdocs-material is not installed.
    """
    _refuse_foreign(folder)
    base.scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="site-", dir=base.scratch) as work:
        return _build(base, folder, Path(work), address, stale or {})


def _build(base: Base, folder: Path, work: Path, address: str, stale: Mapping[str, Iterable[str]]) -> Built:
    out = work / "out"
    root = address.rstrip("/") + "/" if address else ""
    shown = gather(base, clock.now().date(), stale)
    num_pages = 0
    with ThreadPoolExecutor(len(LANGUAGES)) as pool:
        running = []
        # mkdocs turns one language into HTML while the next one is gathered
        for language in LANGUAGES:
            site = make_site(base, shown, language, root)
            num_pages += len(site.pages)
            config = _stage(base, site, work / language)
            running.append((site, pool.submit(_run_mkdocs, config)))
        for site, run in running:
            run.result()
            _collect(site, work / site.language, out / site.folder)
    (out / MARK).write_text("kb built this folder and may replace it\n", encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(out, folder)
    return Built(
        folder,
        num_pages,
        sum(1 for path in folder.rglob("*") if path.is_file()),
    )


def _refuse_foreign(folder: Path) -> None:
    if folder.exists() and not (folder / MARK).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise WrongUse(
            f"{folder}: not replaced",
            cause="it is not empty and kb did not build it",
            remedy="give an empty folder or one of an earlier build",
            next_command="kb site build --dir site",
        )


def _stage(base: Base, site: Site, work: Path) -> Path:
    """Write what mkdocs reads for one language; its configuration."""
    docs = work / "docs"
    for path, data in {**site.pages, **site.assets}.items():
        target = docs / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    config = work / "mkdocs.yml"
    config.write_text(_config(base, site, docs, work / "html"), encoding="utf-8")
    return config


def _collect(site: Site, work: Path, out: Path) -> None:
    """Put the pages mkdocs made and the files beside them where they belong."""
    shutil.copytree(work / "html", out, dirs_exist_ok=True)
    # the theme's language menu asks for a map of the site; mkdocs' own carries a date
    (out / "sitemap.xml").write_bytes(SITEMAP)
    (out / "sitemap.xml.gz").unlink(missing_ok=True)
    for path, data in site.beside.items():
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def _config(base: Base, site: Site, docs: Path, out: Path) -> str:
    import yaml

    schemes = [
        {"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "indigo",
         "toggle": {"icon": "material/weather-night", "name": site.say("to-dark")}},
        {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "black",
         "toggle": {"icon": "material/weather-sunny", "name": site.say("to-light")}},
    ]  # fmt: skip
    value = {
        "site_name": site.title,
        "docs_dir": str(docs),
        "site_dir": str(out),
        "use_directory_urls": True,
        "theme": {
            "name": "material",
            "language": site.language,
            "font": False,
            "palette": schemes,
            "features": [
                "navigation.tabs",
                "navigation.top",
                "navigation.indexes",
                "navigation.prune",
                "content.code.copy",
                "toc.follow",
            ],
        },
        "plugins": [],
        "extra_css": ["assets/kb.css"],
        "extra_javascript": ["assets/kb.js"],
        "hooks": [str(Path(__file__).with_name("site_hook.py"))],
        "extra": {
            "generator": False,
            "raw": site.raw,
            "table_label": site.say("table"),
            "task_label": site.say("task"),
            "alternate": [
                _alternate("中文", "zh", site, base.settings.language),
                _alternate("English", "en", site, base.settings.language),
            ],
        },
        "nav": site.nav,
        "not_in_nav": "*",
        "validation": {"links": {"not_found": "ignore", "anchors": "ignore", "unrecognized_links": "ignore"}},
    }
    return str(yaml.safe_dump(value, allow_unicode=True, sort_keys=False))


def _alternate(name: str, language: str, site: Site, own: str) -> dict[str, str]:
    """One entry of the theme's language menu; addresses are relative to this language's root."""
    link = "./" if language == site.language else f"{site.above}{'' if language == own else language + '/'}"
    return {"name": name, "lang": language, "link": link}


def _run_mkdocs(config: Path) -> None:
    """Turn the pages of one language into HTML, in a process with nothing of ours in its environment."""
    kept = {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV"}
    environ = {key: value for key, value in os.environ.items() if key in kept}
    environ |= {
        "SOURCE_DATE_EPOCH": "0",
        "PYTHONHASHSEED": "0",
        "NO_MKDOCS_2_WARNING": "1",
        "PYTHONUTF8": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(config)],
        env=environ,
        cwd=config.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_TIMEOUT_S,
    )
    if done.returncode == 0:
        return
    said = done.stderr.strip()
    if "No module named mkdocs" in said or "Unrecognised theme name: 'material'" in said:
        raise CannotRun(
            "kb site: not built", cause=MATERIAL_NEEDED, remedy="install the extra: pip install 'kb[site]'"
        )
    raise KbError("kb site: mkdocs failed", cause=said[-2000:] or "it said nothing", remedy="report this")


def serve_site(folder: Path, port: int, ready: Callable[[str], None]) -> None:
    """Serve a built site on this machine only, until it is interrupted.

    Args:
        folder: From `build_site`.
        port: 0 takes a free one.
        ready: Told the address once it answers.

    Raises:
        CannotRun: The port is taken.
    """
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(SimpleHTTPRequestHandler, directory=folder))
    except OSError as error:
        raise CannotRun(
            f"kb site serve: port {port} cannot be used",
            cause=error.strerror or str(error),
            remedy="give another one; 0 takes a free one",
            next_command="kb site serve --port 0",
        ) from error
    with server:
        ready(f"http://127.0.0.1:{server.server_port}/")
        server.serve_forever()
