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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kb import clock
from kb.errors import CannotRun, KbError, WrongUse
from kb.publish.site_content import Site, make_site
from kb.store import Base

MARK = ".kb-site"
"""File by which a folder is known to be a site that kb built and may replace."""
BUILD_TIMEOUT_S = 600
MATERIAL_NEEDED = "mkdocs-material is not installed"
SITEMAP = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>\n'
)
EXTENSIONS: tuple[Any, ...] = (
    "tables", "sane_lists", "admonition", {"toc": {"permalink": False, "slugify": "SLUGIFY"}},
    {"pymdownx.tasklist": {"custom_checkbox": False}}, "pymdownx.superfences",
)  # fmt: skip


@dataclass(frozen=True)
class Built:
    """What a build made."""

    folder: Path
    pages: int
    files: int


def build_site(base: Base, folder: Path, *, address: str = "") -> Built:
    """Build the site of a base.

    Args:
        base: The knowledge base; published pages, not drafts in other stages, appear.
        folder: Where the site goes; made, or replaced if kb built it.
        address: Where it will be served, for absolute links in feeds; empty for relative ones.

    Raises:
        WrongUse: ``folder`` holds something else.
        CannotRun: mkdocs-material is not installed.
    """
    _refuse_foreign(folder)
    work = base.cache / "site"
    shutil.rmtree(work, ignore_errors=True)
    out = work / "out"
    root = address.rstrip("/") + "/" if address else ""
    sites = {language: make_site(base, language, root, clock.now().date()) for language in ("zh", "en")}
    _run_mkdocs([_stage(base, site, work / language) for language, site in sites.items()])
    for language, site in sites.items():
        _collect(site, work / language, out / ("" if language == base.settings.language else language))
    (out / MARK).write_text("kb built this folder and may replace it\n", encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(out, folder)
    shutil.rmtree(work)
    return Built(
        folder,
        sum(len(site.pages) for site in sites.values()),
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

    main = base.settings.language
    here = f"{site.language}/" if site.language != main else ""
    up = "../" if here else ""
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
                "navigation.prune",
                "content.code.copy",
                "toc.follow",
            ],
        },
        "plugins": [],
        "markdown_extensions": list(EXTENSIONS),
        "extra_css": ["assets/kb.css"],
        "extra_javascript": ["assets/kb.js"],
        "hooks": [str(Path(__file__).with_name("site_hook.py"))],
        "extra": {
            "generator": False,
            "raw": site.raw,
            "table_label": site.say("table"),
            "task_label": site.say("task"),
            "alternate": [
                {
                    "name": "中文",
                    "lang": "zh",
                    "link": up if main == "zh" else f"{up}zh/" if not here else "./",
                },
                {
                    "name": "English",
                    "lang": "en",
                    "link": up if main == "en" else f"{up}en/" if not here else "./",
                },
            ],
        },
        "nav": site.nav,
        "not_in_nav": "*",
        "validation": {"links": {"not_found": "ignore", "anchors": "ignore", "unrecognized_links": "ignore"}},
    }
    text: str = yaml.safe_dump(value, allow_unicode=True, sort_keys=False)
    return text.replace("SLUGIFY", "!!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}")


def _run_mkdocs(configs: list[Path]) -> None:
    """Run mkdocs once for each language, side by side."""
    kept = {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV"}
    environ = {key: value for key, value in os.environ.items() if key in kept}
    environ |= {
        "SOURCE_DATE_EPOCH": "0",
        "PYTHONHASHSEED": "0",
        "NO_MKDOCS_2_WARNING": "1",
        "PYTHONUTF8": "1",
    }
    with ThreadPoolExecutor(len(configs)) as pool:
        for done in pool.map(lambda config: _mkdocs(config, environ), configs):
            if done.returncode == 0:
                continue
            said = done.stderr.strip()
            if "No module named mkdocs" in said or "Unrecognised theme name: 'material'" in said:
                raise CannotRun(
                    "kb site: not built",
                    cause=MATERIAL_NEEDED,
                    remedy="install the extra: pip install 'kb[site]'",
                )
            raise KbError(
                "kb site: mkdocs failed", cause=said[-2000:] or "it said nothing", remedy="report this"
            )


def _mkdocs(config: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(config)]
    return subprocess.run(
        command,
        env=environ,
        cwd=config.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_TIMEOUT_S,
    )


def serve_site(folder: Path, port: int) -> None:
    """Serve a built site on this machine only, until it is interrupted."""
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    with ThreadingHTTPServer(
        ("127.0.0.1", port), partial(SimpleHTTPRequestHandler, directory=folder)
    ) as server:
        server.serve_forever()
