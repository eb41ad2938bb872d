"""`make demo` runs the whole pipeline offline, twice with the same files, and ends by saying where to look."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = "published/inference/kvcache/index.md"


def files(folder):
    base = folder / "research-kb"
    kept = (p for p in sorted(base.rglob("*")) if p.is_file() and ".kb" not in p.parts)
    return {p.relative_to(base).as_posix(): p.read_bytes() for p in kept}


class Demo:
    """One run of the demo in a folder of its own."""

    def __init__(self, folder):
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, ROOT / "scripts/demo.py", folder], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.out, self.took = done.stdout, time.monotonic() - began
        self.files = files(folder)
        self.page = self.files[PAGE].decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if not Path(sys.executable).with_name("kb").exists():
        pytest.fail("the package is not installed beside this interpreter; make test installs it")
    return tmp_path_factory.mktemp("a demo")


@pytest.fixture(scope="module")
def demo(folder):
    return Demo(folder)


def test_the_pipeline_ends_within_a_minute(demo):
    assert demo.took < 60


def test_it_ends_with_the_page_and_the_verdicts(demo):
    assert re.search(r"^eai/evict-14400 +partly +derived ", demo.out, re.MULTILINE)
    assert f"/research-kb/{PAGE}\n" in demo.out


def test_the_page_shows_the_sources_number_beside_ours(demo):
    assert "kb:begin inference/kvcache/evidence" in demo.page
    assert "eai/evict-14400" in demo.page
    assert "figure-freed-by-eviction" in demo.page


def test_drafts_of_a_person_and_of_the_sources_are_in_the_inbox(demo):
    curators = {name.split("/")[1] for name in demo.files if name.startswith("inbox/")}
    assert "lin" in curators
    assert len(curators) == 2


def test_a_second_demo_makes_the_same_files(demo, folder):
    """All clocks stand still; what differs are facts of the run, such as the commit, in the measurements."""
    again = Demo(folder).files
    assert again.keys() == demo.files.keys()
    different = [name for name, data in demo.files.items() if again[name] != data]
    assert [name for name in different if not name.startswith("measurements/")] == []
