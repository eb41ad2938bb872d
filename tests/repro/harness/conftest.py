"""A base with one claim, and reproductions that a test plants beside the real ones."""

import textwrap

import pytest

import kb.repro
from kb.repro.harness import contract, digests
from kb.store import Base

CLAIM = """
[[claim]]
id = "toy/third"
item = "url:example.org/toy"
statement = {zh = "三分之一", en = "a third comes back"}
metric = "share"
unit = "fraction"
low = 0.33
high = 0.33
bound = "about"
provenance = "primary"

[claim.rule]
metric = "share"
"""

TOY = '''
"""A toy: what share of the numbers below n is divisible by three?"""

from kb.errors import CannotRun, WrongResult
from kb.model import Figure, Point, Record, Series, Text
from kb.repro.harness.judge import by_rule

CLAIMS = ("toy/third",)
LEVELS = ("derived",)
NEEDS = ()
judge = by_rule


class Case(Record):
    n: int = 3


def cases(scope):
    return [Case(n=n) for n in (300, 600, 900)]


def count(n):
    return len(range(0, n, 3)) / n


def check(case, bench):
    slow = sum(i % 3 == 0 for i in range(case.n)) / case.n
    if count(case.n) != slow:
        raise WrongResult("count is off", cause=f"{count(case.n)} is not {slow}", remedy="mend it")


def measure(case, bench):
    yield bench.record("share", case, [count(case.n)], expected=1 / 3)


def figure(taken):
    points = tuple(Point(x=m.case["n"], y=m.samples[0]) for m in taken)
    text = Text(zh="图", en="a figure")
    return [Figure(name="toy", repro="toy", title=text, x=text, y=text, alt=text, series=(Series(label=text, points=points),))]
'''


@pytest.fixture
def base(tmp_path):
    root = tmp_path / "a base"
    (root / "claims").mkdir(parents=True)
    (root / "kb.toml").write_text("")
    (root / "claims/toy.toml").write_text(CLAIM, encoding="utf-8")
    return Base(root)


@pytest.fixture
def plant(tmp_path, monkeypatch):
    """Write a module as ``kb.repro.<name>`` and return its unit; called again, it replaces the module."""
    import sys

    folder = tmp_path / "planted"
    folder.mkdir()
    monkeypatch.setattr(contract, "FOLDER", folder)
    monkeypatch.setattr(kb.repro, "__path__", [*kb.repro.__path__, str(folder)])

    def write(text=TOY, name="toy"):
        path = folder / f"{name}.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        monkeypatch.delitem(sys.modules, f"kb.repro.{name}", raising=False)
        monkeypatch.delattr(kb.repro, name, raising=False)
        digests._imported.cache_clear()
        digests._sum.cache_clear()
        import importlib

        importlib.invalidate_caches()
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        return contract.units()[name.replace("_", "-")]

    return write


def files_of(base):
    return {
        path.relative_to(base.root).as_posix(): path.read_bytes()
        for path in base.root.rglob("*")
        if path.is_file() and ".kb" not in path.relative_to(base.root).parts
    }


@pytest.fixture
def files(base):
    """Bytes of every tracked file of the base."""
    return lambda: files_of(base)
