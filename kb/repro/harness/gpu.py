"""What the GPU and its driver say of themselves, through torch and NVML."""

from __future__ import annotations

from typing import Any


def describe() -> dict[str, Any]:
    """`Environment` fields of the current CUDA device; the caller has seen that there is one."""
    import torch

    index = torch.cuda.current_device()
    details = {
        "cuda": str(torch.version.cuda),
        "capability": ".".join(map(str, torch.cuda.get_device_capability(index))),
    }
    driver = ""
    try:
        import pynvml
    except ModuleNotFoundError:
        details["nvml"] = "absent"
    else:
        pynvml.nvmlInit()
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            driver = str(pynvml.nvmlSystemGetDriverVersion())
            details |= {"ecc": _ecc(pynvml, handle), "mig": _mig(pynvml, handle)}
        finally:
            pynvml.nvmlShutdown()
    return {"machine": torch.cuda.get_device_name(index), "driver": driver, "details": details}


def _ecc(pynvml: Any, handle: Any) -> str:
    try:
        return "on" if pynvml.nvmlDeviceGetEccMode(handle)[0] else "off"
    except pynvml.NVMLError:
        return "not supported"


def _mig(pynvml: Any, handle: Any) -> str:
    try:
        return "on" if pynvml.nvmlDeviceGetMigMode(handle)[0] else "off"
    except pynvml.NVMLError:
        return "not supported"


if __name__ == "__main__":
    from kb.repro.harness.environment import need_gpu, observe

    need_gpu("the GPU machine")
    print(observe(("torch", "triton"), gpu=True).to_json())  # noqa: T201  a step of scripts/gpu_check
