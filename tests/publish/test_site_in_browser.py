"""A reader with a real browser: pages open without an error or a foreign request, search and filters work, axe is content."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.cli.root import run
from tests.publish.browser import browsing, require_browser, served

pytest.importorskip("material", reason="the extra [site] is not installed")
ROOT = Path(__file__).resolve().parents[2] / "shared/research-kb"
WIDE = (
    "",
    "inference/kvcache/",
    "systems/eai/",
    "claims/?system=eai",
    "search/?q=显存",
    "guides/vllm-vs-sglang/",
    "en/",
)
NARROW = (
    "inference/kvcache/",
    "ledger/",
    "guides/engines-four-dimensions/",
    "claims/?system=eai",
    "search/?q=显存",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The shipped base's site, served on loopback."""
    import os
    import shutil

    require_browser()
    place = tmp_path_factory.mktemp("site of the base")
    shutil.copytree(ROOT, place / "base", ignore=shutil.ignore_patterns(".kb"))
    os.environ["KB_NOW"] = "2026-07-02T03:05:00Z"
    try:
        assert run(["-C", str(place / "base"), "publish"]) in {0, 3}
        assert run(["-C", str(place / "base"), "site", "build", "--dir", str(place / "html")]) == 0
    finally:
        del os.environ["KB_NOW"]
    with served(place / "html") as url:
        yield url


@pytest.fixture(scope="module")
def browser():
    with browsing() as program:
        yield program


@pytest.fixture
def reader(browser, request, site):
    """A page of the given width and scheme that fails the test on any error or request that leaves the site."""
    width, scheme = getattr(request, "param", (1280, "light"))
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, locale="zh-CN"
    )
    context.set_default_timeout(120_000)  # a busy machine is slow, not wrong
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith((site, "data:")) or wrong.append(asked.url))
    yield page
    context.close()
    assert wrong == []


SIGHTS = [
    pytest.param((1280, "light"), id="wide and light"),
    pytest.param((390, "dark"), id="narrow and dark"),
]


TOO_WIDE = """[...document.querySelectorAll('.kb-scroll')]
    .filter(frame => frame.scrollWidth > frame.clientWidth && !frame.querySelector('.kb-numbers'))
    .map(frame => frame.innerText.slice(0, 60))"""


def look(reader, site, path) -> None:
    """Open a page: axe finds nothing serious, nothing is wider than the screen, no table is cut off."""
    from axe_playwright_python.sync_playwright import Axe

    reader.goto(site + path)
    if "?" in path:
        reader.wait_for_selector("body[data-kb-ready]")
    found = Axe().run(reader).response["violations"]
    serious = [
        (v["id"], v["nodes"][0]["html"][:120]) for v in found if v["impact"] in {"serious", "critical"}
    ]
    assert serious == [], path
    page = "document.documentElement"
    assert not reader.evaluate(f"{page}.scrollWidth > {page}.clientWidth"), path
    assert reader.evaluate(TOO_WIDE) == [], path


@pytest.mark.parametrize("reader", SIGHTS, indirect=True)
def test_every_kind_of_page_is_accessible_and_fits_its_width(reader, site):
    for path in WIDE if reader.viewport_size["width"] > 1000 else NARROW:
        look(reader, site, path)


@pytest.mark.soak
@pytest.mark.parametrize(
    "reader",
    [pytest.param((w, s), id=f"{w} {s}") for w in (1280, 390) for s in ("light", "dark")],
    indirect=True,
)
def test_every_page_of_the_base_is_accessible_and_fits_every_width(reader, site):
    paths = sorted(
        {
            p.parent.relative_to(ROOT / "published").as_posix() + "/"
            for p in (ROOT / "published").glob("**/index.md")
        }
    )
    paths += ["", "en/", "topics/", "guides/", "systems/", "claims/?verdict=contradicted", "search/?q=KV"]
    for path in paths:
        look(reader, site, path)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("工程", "KV 压缩工程陷阱"),
        ("显存", "显存"),
        ("命中率", "命中率"),
        ("2606.06302", "tangram/"),
        ("KV", "KV"),
    ],
)
def test_search_finds(reader, site, words, expected):
    reader.goto(site)
    reader.fill(".kb-head input", words)
    reader.press(".kb-head input", "Enter")
    reader.wait_for_selector("body[data-kb-ready=search]")
    assert expected in "".join(reader.locator("#kb-hits a").all_inner_texts())
    reader.locator("#kb-hits a").first.click()
    reader.wait_for_load_state("networkidle")
    assert reader.locator("h1").count() == 1


def test_claims_are_filtered_by_keyboard_and_by_address(reader, site):
    reader.goto(f"{site}claims/?system=tangram")
    reader.wait_for_selector("body[data-kb-ready=ledger]")
    shown = reader.locator("#kb-ledger tbody tr:visible")
    assert shown.count() == reader.locator("#kb-ledger tbody tr[data-system=tangram]").count() > 0
    reader.focus("#kb-filter input[name=q]")
    reader.keyboard.type("不会有这样的文字")
    assert shown.count() == 0
    assert "显示 0 / " in reader.inner_text("#kb-count")


def test_everything_but_search_and_filters_works_without_a_script(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}claims/")
    assert page.locator("#kb-ledger tbody tr").first.is_visible()
    assert not page.locator("#kb-filter").is_visible()
    page.goto(f"{site}inference/kvcache/")
    assert page.locator("h1").inner_text().startswith("KV cache")
    context.close()


def test_a_chinese_glyph_is_drawn_and_not_a_box(reader, site):
    """Two different characters look different; without a font both would be the same box."""
    reader.goto(site)
    shots = []
    for text in ("显", "页"):
        reader.evaluate("t => { document.querySelector('h1').textContent = t }", text)
        shots.append(reader.locator("h1").screenshot())
    assert shots[0] != shots[1]
