"""What is installed is the whole product: every file under kb/ is in the wheel, the versions agree, extras are declared."""

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import kb

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel built from a copy of the tree, without network."""
    copy = tmp_path_factory.mktemp("a tree")
    shutil.copytree(ROOT / "kb", copy / "kb", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    code = "from setuptools import build_meta; import sys; print(build_meta.build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(copy)],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(copy / done.stdout.split()[-1])


def test_every_file_of_the_package_is_installed(wheel):
    """A template or a data file that is forgotten fails on a user's machine only."""
    inside = set(wheel.namelist())
    here = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "kb").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    assert here - inside == set()


def test_nothing_but_the_package_is_installed(wheel):
    assert {name.split("/")[0] for name in wheel.namelist()} == {"kb", f"kb-{kb.__version__}.dist-info"}


def test_the_console_script_is_the_program(wheel):
    (name,) = [n for n in wheel.namelist() if n.endswith("entry_points.txt")]
    assert "kb = kb.cli:main" in wheel.read(name).decode()


def imported(folder):
    """Third-party modules that files under a folder import anywhere, with one of the files."""
    found = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            found |= {name.partition(".")[0]: path.relative_to(ROOT).as_posix() for name in names}
    ours = {"kb", "tests", "scripts", ""} | {path.stem for path in (ROOT / "scripts").glob("*.py")}
    return {name: path for name, path in found.items() if name not in ours | sys.stdlib_module_names}


def name_of(requirement):
    """Distribution name of a requirement, normalised."""
    return re.split(r"[<>=!~;\[ ]", requirement)[0].lower().replace("_", "-")


@pytest.mark.parametrize(
    ("folder", "extras"),
    [
        ("kb", ("page", "repro", "site", "mcp", "cluster", "model", "sim")),
        ("tests", ("page", "repro", "site", "mcp", "cluster", "model", "sim", "dev")),
    ],
)
def test_every_import_is_a_declared_requirement(folder, extras):
    """What happens to be installed here because another package needs it may be absent elsewhere."""
    declared = {name_of(r) for r in PROJECT["dependencies"]}
    declared |= {name_of(r) for extra in extras for r in PROJECT["optional-dependencies"][extra]}
    providers = importlib.metadata.packages_distributions()
    undeclared = {
        module: path
        for module, path in imported(folder).items()
        if not {name_of(name) for name in providers.get(module, [module])} & declared
    }
    assert undeclared == {}


def test_every_requirement_is_pinned_for_the_tests():
    pins = (ROOT / "requirements/constraints.txt").read_text().lower().replace("_", "-")
    names = {line.partition("==")[0] for line in pins.splitlines()}
    extras = PROJECT["optional-dependencies"]
    wanted = [
        *PROJECT["dependencies"],
        *(r for name in ("page", "repro", "site", "mcp", "dev") for r in extras[name]),
    ]
    for requirement in wanted:
        name = (
            requirement.partition(";")[0]
            .split(">")[0]
            .split("=")[0]
            .split("[")[0]
            .strip()
            .lower()
            .replace("_", "-")
        )
        assert name in names, f"{requirement}: run make pins"


def test_no_requirement_names_a_place():
    """Packages come by name from wherever the user's client looks, never from an address of ours."""
    for path in (ROOT / "requirements").iterdir():
        assert "://" not in path.read_text()
        assert "--index" not in path.read_text()


def test_the_installed_program_runs_from_any_folder(tmp_path):
    program = Path(sys.executable).with_name("kb")
    if not program.exists():
        pytest.fail("the package is not installed beside this interpreter; make test installs it")
    done = subprocess.run(
        [program, "--version"], cwd=tmp_path, capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout == f"kb {kb.__version__}\n"
    assert importlib.metadata.version("kb") == kb.__version__
