"""A watch on the GPU while it is measured: clocks, temperature and throttle reasons, sampled through NVML."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Self

PERIOD_S = 0.05
HARMLESS = 0x1 | 0x2
"""Throttle reasons that mean nothing: idle, and clocks set by the application."""
REASONS = {
    0x4: "power cap", 0x8: "hardware slowdown", 0x10: "sync boost", 0x20: "software thermal", 0x40: "hardware thermal",
    0x80: "power brake", 0x100: "display clock",
}  # fmt: skip


class Watch:
    """Samples in a thread from ``with Watch():`` on; silent where NVML is absent."""

    def __init__(self, index: int = 0) -> None:
        self._index = index
        self._clocks: list[int] = []
        self._temperatures: list[int] = []
        self._reasons = 0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._nvml: Any = None

    def __enter__(self) -> Self:
        try:
            import pynvml
        except ModuleNotFoundError:
            return self
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError:
            return self
        self._nvml = pynvml
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._nvml.nvmlShutdown()

    def _sample(self) -> None:
        nvml = self._nvml
        handle = nvml.nvmlDeviceGetHandleByIndex(self._index)
        while not self._over.is_set():
            try:
                self._clocks.append(int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)))
                self._temperatures.append(
                    int(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
                )
                self._reasons |= int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
            except nvml.NVMLError:
                return
            self._over.wait(PERIOD_S)

    def seen(self) -> dict[str, Any]:
        """Facts of the run: SM clock in MHz, temperature in °C, throttle reasons; empty where nothing was sampled."""
        if not self._clocks:
            return {}
        ordered = sorted(self._clocks)
        reasons = self._reasons & ~HARMLESS
        return {
            "sm_mhz": [ordered[0], ordered[len(ordered) // 2], ordered[-1]],
            "celsius": max(self._temperatures, default=0),
            "throttled": [text for bit, text in REASONS.items() if reasons & bit],
        }
