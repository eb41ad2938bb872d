"""Read defaults of vLLM out of a published wheel, without installing or running it.

    pip download vllm==0.33.0 --no-deps --dest /tmp/wheels
    python scripts/read_vllm_defaults.py /tmp/wheels/vllm-0.33.0-*.whl

It writes kb/repro/sim/vllm_defaults.toml: version, digest of the wheel, and each default with the class that states it. The
wheel has some 340 MB, so the file is shipped and the wheel is not; `kb repro vllm-config` judges from the file.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import zipfile
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "kb/repro/sim/vllm_defaults.toml"
WANTED = {
    "gpu_memory_utilization": ("vllm/config/cache.py", "CacheConfig"),
    "enable_prefix_caching": ("vllm/config/cache.py", "CacheConfig"),
    "prefix_caching_hash_algo": ("vllm/config/cache.py", "CacheConfig"),
    "DEFAULT_BLOCK_SIZE": ("vllm/config/cache.py", "CacheConfig"),
    "mm_processor_cache_gb": ("vllm/config/multimodal.py", "MultiModalConfig"),
}
"""Field → file and class that hold it."""


def default_of(source: str, kind: str, field: str) -> str | float | int | bool:
    """The literal a class gives a field, plain or inside ``Field(default=…)``.

    Raises:
        LookupError: The class or the field is not there, or its default is no literal.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef) or node.name != kind:
            continue
        for line in node.body:
            if isinstance(line, ast.AnnAssign) and getattr(line.target, "id", "") == field and line.value:
                value = line.value
                if isinstance(value, ast.Call):
                    value = next(word.value for word in value.keywords if word.arg == "default")
                found = ast.literal_eval(value)
                if isinstance(found, (str, float, int, bool)):
                    return found
    raise LookupError(f"{kind}.{field}: no literal default in this version")


def main() -> None:
    """Read one wheel and write the file."""
    wheel = Path(sys.argv[1])
    version = wheel.name.split("-")[1]
    lines = [
        "# Defaults of vLLM as its published wheel states them. Written by scripts/read_vllm_defaults.py; not edited by hand.",
        f'version = "{version}"',
        f'wheel = "{wheel.name}"',
        f'sha256 = "{hashlib.sha256(wheel.read_bytes()).hexdigest()}"',
        "",
        "[defaults]",
    ]
    with zipfile.ZipFile(wheel) as archive:
        for field, (file, kind) in WANTED.items():
            value = default_of(archive.read(file).decode(), kind, field)
            shown = f'"{value}"' if isinstance(value, str) else str(value).lower()
            lines.append(f"{field} = {shown}  # {file} {kind}")
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{TARGET.name}: {version}")


if __name__ == "__main__":
    main()
