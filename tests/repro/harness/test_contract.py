"""Every reproduction in the folder keeps the contract; nothing is registered anywhere."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from kb.errors import BadConfig, NothingMatches
from kb.model import Level
from kb.repro.harness import contract
from kb.repro.harness.rules import bands, metric_of
from kb.store import Base
from kb.vocab import METRICS
from tests.repro.harness.conftest import TOY

REPOSITORY = Path(__file__).resolve().parents[3]
UNITS = contract.units()
SHIPPED = Base(REPOSITORY / "shared/research-kb")


@pytest.fixture(scope="module")
def claims():
    return SHIPPED.claims()


@pytest.fixture(scope="module")
def tests():
    return [path.read_text(encoding="utf-8") for path in (REPOSITORY / "tests/repro").rglob("test_*.py")]


@pytest.mark.parametrize("name", UNITS)
class TestEveryUnit:
    def test_has_the_five_functions_and_says_what_it_shows(self, name):
        module = contract.load(UNITS[name])
        assert len(UNITS[name].title) > 20
        assert module.CLAIMS
        for function in contract.FUNCTIONS:
            expected = {"cases": {1}, "figure": {1, 2}}.get(function, {2})
            assert len(inspect.signature(getattr(module, function)).parameters) in expected, function

    def test_speaks_to_claims_that_exist_and_can_be_judged(self, name, claims):
        """By a band, declared or the default one, or by a named check."""
        for claim in UNITS[name].claims:
            assert claim in claims, claim
            rule = claims[claim].rule
            assert (rule and rule.check) or bands(claims[claim]) or claims[claim].kind != "number", claim
            assert (rule and rule.check) or metric_of(claims[claim]) in METRICS, claim

    def test_names_its_levels(self, name):
        assert UNITS[name].levels
        assert set(UNITS[name].levels) <= set(Level)

    def test_imports_torch_only_if_it_says_so(self, name):
        """`judge` and `figure` work on a laptop without it."""
        tree = ast.parse(UNITS[name].path.read_text(encoding="utf-8"))
        top = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        names = {alias.name for node in top for alias in node.names} | {getattr(n, "module", "") for n in top}
        assert not {n.partition(".")[0] for n in names if n} & {"torch", "triton"}

    def test_has_a_test(self, name, claims, tests):
        """A file of its own, or the walk over all of the exact tier; reasons alone need none."""
        unit = UNITS[name]
        module = contract.load(unit)
        is_reasons = not list(module.cases(contract.Scope((c, claims[c]) for c in unit.claims)))
        assert (
            is_reasons or hasattr(module, "QUANTITIES") or any(f"import {unit.path.stem}" in t for t in tests)
        )


def test_listing_imports_no_reproduction():
    code = "import sys; from kb.repro.harness.contract import units; units(); print([m for m in sys.modules if m.startswith('kb.repro.') and 'harness' not in m] + [m for m in ('torch', 'numpy') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    assert done.stdout.strip() == "[]"


def test_the_first_reproduction_imports_no_torch():
    code = "import sys; from kb.repro.harness import run; from kb.repro import paged_eviction; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        pytest.param('CLAIMS = ("toy/third",)\n', "", "no literal CLAIMS", id="no-claims"),
        pytest.param(
            '("toy/third",)', "tuple(['toy/third'])", "no literal tuple", id="claims-that-are-computed"
        ),
        pytest.param('("derived",)', '("proven",)', "unknown level", id="a-level-that-is-none"),
        pytest.param(
            "def figure(taken)", "def picture(taken)", "no function figure", id="a-function-is-missing"
        ),
    ],
)
def test_a_module_that_breaks_the_contract_is_named(plant, old, new, match):
    assert old in TOY
    with pytest.raises(BadConfig) as caught:
        contract.load(plant(TOY.replace(old, new)))
    assert match in caught.value.cause


def test_a_package_that_is_absent_is_named(plant):
    from kb.errors import CannotRun

    with pytest.raises(CannotRun) as caught:
        contract.load(plant(TOY.replace("from kb.model", "import no_such_package\nfrom kb.model")))
    assert "no_such_package is not installed" in caught.value.cause


def test_a_name_may_be_a_system_and_a_slip_is_hinted_at(plant):
    plant(TOY.replace('"toy/third",', '"toy/third", "other/fourth",'))
    assert [u.name for u in contract.find_units(["other"])] == ["toy"]
    assert [u.name for u in contract.find_units(["other", "toy"])] == ["toy"]
    with pytest.raises(NothingMatches) as caught:
        contract.find_units(["othre"])
    assert caught.value.remedy == "did you mean other?"
