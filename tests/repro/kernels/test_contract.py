"""Each file in kb/repro/kernels keeps the contract: reference first, kernel, wrapper of the file's name, example."""

import ast
import inspect
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed; the kernels need it")
pytest.importorskip("triton", reason="Triton is not installed; the kernels need it")

import kb.repro.kernels as package
from tests.repro.kernels.agreement import NAMES, load

FOLDER = Path(package.__file__).parent


def tree(name):
    return ast.parse((FOLDER / f"{name}.py").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_reference_comes_before_every_kernel_and_the_wrapper_after(name):
    functions = [node for node in tree(name).body if isinstance(node, ast.FunctionDef)]
    order = [f.name for f in functions]
    kernels = [f.name for f in functions if any("jit" in ast.unparse(d) for d in f.decorator_list)]
    assert kernels
    assert order.index("reference") < min(map(order.index, kernels))
    assert max(map(order.index, kernels)) < order.index(name) < order.index("example")


@pytest.mark.parametrize("name", NAMES)
def test_wrapper_takes_what_the_reference_takes_and_more_only_by_name(name):
    module = load(name)
    expected = list(inspect.signature(module.reference).parameters)
    wrapper = inspect.signature(getattr(module, name)).parameters.values()
    assert [p.name for p in wrapper if p.kind is p.POSITIONAL_OR_KEYWORD] == expected
    assert all(p.default is not p.empty for p in wrapper if p.kind is p.KEYWORD_ONLY)


@pytest.mark.parametrize("name", NAMES)
def test_kernels_import_tensors_and_each_other_and_nothing_else_of_kb(name):
    allowed = {"torch", "triton", "__future__", "itertools", "typing"}
    for node in ast.walk(tree(name)):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for imported in names:
            assert imported.split(".")[0] in allowed or imported.startswith("kb.repro.kernels.")


@pytest.mark.parametrize("name", NAMES)
def test_plain_pointers_only(name):
    """Block pointers and descriptors are missing from some of the Triton versions that must work."""
    text = (FOLDER / f"{name}.py").read_text()
    assert not [
        word for word in ("make_block_ptr", "tensor_descriptor", "autotune", "libdevice") if word in text
    ]


@pytest.mark.parametrize("name", NAMES)
def test_reference_says_shapes_and_module_says_axes(name):
    module = load(name)
    assert "Axes:" in module.__doc__
    assert "[" in module.reference.__doc__
    assert "Returns:" in module.reference.__doc__
