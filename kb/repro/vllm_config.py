"""vLLM's configuration pages: the arithmetic of the KV budget, of shared-memory figures and of preemption.

Backs     vllm/shm-first-prefill · shm-first-ttft · shm-cached-prefill · shm-cached-ttft
Question  The printed rates give the stated gains.
Shows not The gains themselves, measured on another model than the drafts say. Defaults are product state: they carry a
          day of expiry and wait for a run against the installed version.
"""

from __future__ import annotations

from kb.repro.harness.exact import Quantity, by_claim, cut, exact, gain, no_figure

CLAIMS = ("vllm/shm-first-prefill", "vllm/shm-first-ttft", "vllm/shm-cached-prefill", "vllm/shm-cached-ttft")
LEVELS = ("derived",)
NEEDS = ()


QUANTITIES = (
    Quantity("vllm/shm-first-prefill", gain, {"old": 581.3, "new": 648.2}),
    Quantity("vllm/shm-first-ttft", cut, {"old": 3899, "new": 3491}),
    Quantity("vllm/shm-cached-prefill", gain, {"old": 2894, "new": 4918}),
    Quantity("vllm/shm-cached-ttft", cut, {"old": 790, "new": 471}),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim()
figure = no_figure
