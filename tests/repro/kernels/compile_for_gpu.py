"""Compile every kernel for a GPU that is not there: `python compile_for_gpu.py DTYPE NAME…`.

Runs in a process of its own, without the interpreter. Each wrapper is called with its module's example; instead
of launching, the kernel is compiled for compute capability 9.0 with the arguments it was given.
"""

import importlib
import os
import sys

assert os.environ.get("TRITON_INTERPRET", "0") != "1"

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

TYPES = {
    torch.float32: "*fp32",
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.int32: "*i32",
    torch.bool: "*i1",
}
compiled = []


def compile_instead(self, *args, grid, warmup, **kwargs):
    options = {k: kwargs.pop(k) for k in ("num_warps", "num_stages") if k in kwargs}
    values = dict(zip(self.arg_names, args, strict=False)) | kwargs
    constants = {p.name for p in self.params if p.is_constexpr}
    signature = {}
    for name, value in values.items():
        if name in constants:
            signature[name] = "constexpr"
        elif isinstance(value, torch.Tensor):
            signature[name] = TYPES[value.dtype]
        else:
            signature[name] = "fp32" if isinstance(value, float) else "i32"
    # a CPU tensor asks for the wide path; a GPU takes the narrow one
    constexprs = {n: (False if n == "WIDE" else values[n]) for n in constants}
    source = ASTSource(self, signature, constexprs)
    binary = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    compiled.append((self.fn.__name__, len(binary.asm["cubin"])))


JITFunction.run = compile_instead

dtype = getattr(torch, sys.argv[1])
for name in sys.argv[2:]:
    module = importlib.import_module(f"kb.repro.kernels.{name}")
    compiled.clear()
    getattr(module, name)(*module.example(dtype, torch.device("cpu")))
    assert compiled
    sys.stdout.write(" ".join([name, *(f"{kernel}={size}" for kernel, size in compiled)]) + "\n")
