"""A real engine's prefix cache, held against the simulator: which share of prompt tokens do its own counters say hits?

Backs     vllm/prefix-cache-default · vllm/gpu-mem-util-default · eai/block-16
Question  Twenty requests of which 20, 60 or 95 % begin with one prefix of 250 to 2,048 tokens, one after another: what the engine
          counts as found, beside what our cache by page hashes finds for the same tokens in the same order. What a vLLM
          that is started without options says of its pages, its hash and its share of memory.
Shows not Time, or what a GPU build chooses: vLLM's CPU build pages by 128 tokens where none is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Literal

from kb.errors import CannotRun, WrongResult
from kb.model import Claim, Figure, Measurement, Outcome, Point, Record, Series, Text
from kb.repro.engines.counters import read_counters
from kb.repro.engines.launch import Serving, Setup, serving
from kb.repro.engines.load import Ask, Terms, drive, need_clean
from kb.repro.engines.prompts import overlapping
from kb.repro.harness.bench import Bench
from kb.repro.harness.contract import Scope
from kb.repro.harness.judge import Answer, with_checks
from kb.repro.sim.page_hash import PageHashCache
from kb.repro.sim.radix import to_key

CLAIMS = ("vllm/prefix-cache-default", "vllm/gpu-mem-util-default", "eai/block-16")
LEVELS = ("proxy",)
NEEDS = ("engine",)
PREFIXES = (250, 512, 1024, 2048)
"""Tokens; 250 ends within a page, so that a partly shared page shows."""
OVERLAPS = (0.2, 0.6, 0.95)
OWN, REQUESTS = 70, 20
DEADLINE_S = 120.0
"""Of one request; the first that fails ends the run, for then there is no number."""
CLOSE = 0.02
"""Largest difference between the engine's hit rate and the simulator's."""
STATED_PAGE, STATED_HASH = 16, "sha256"
SMALL_PAGE, CPU_PAGE = 32, 128
"""The smallest page the CPU kernels take, and what the CPU build chooses."""


class Sweep(Record):
    """One server, every prefix length and overlap."""

    pattern: Literal["as-installed", "page-32"]
    """Without any option of its cache, or with pages of 32 tokens."""


class Load(Record):
    """One prefix length and one overlap on one server."""

    pattern: Literal["as-installed", "page-32"]
    prefix: int
    overlap: float
    """Share of requests that begin with the prefix."""
    own: int = OWN
    requests: int = REQUESTS
    page_tokens: int
    """As the engine says."""


class Said(Record):
    """What a server started without options says of its cache."""

    pattern: Literal["settings"] = "settings"
    prefix_caching: str
    hash: str
    page_tokens: int


def cases(scope: Scope) -> Iterator[Sweep]:
    """Two servers."""
    del scope
    yield Sweep(pattern="as-installed")
    yield Sweep(pattern="page-32")


# Reference


def closed_form(
    prefix: int, overlap: float, page_tokens: int, own: int = OWN, count: int = REQUESTS
) -> float:
    """All sharing requests but the first find the full pages of the prefix: (f·N − 1)/N · ⌊P/g⌋·g/(P + u)."""
    found = prefix // page_tokens * page_tokens
    return (round(overlap * count) - 1) / count * found / (prefix + own)


def simulated(prompts: Sequence[Sequence[int]], page_tokens: int, pages: int) -> float:
    """Hit rate of our cache by page hashes, one request after another."""
    cache = PageHashCache(page_tokens, pages)
    found = total = 0
    for prompt in prompts:
        request = cache.admit(to_key(prompt))
        if request is None:
            raise CannotRun(
                "not simulated",
                cause=f"a prompt of {len(prompt)} tokens does not fit {pages} pages of {page_tokens}",
                remedy="give the engine more memory",
            )
        found, total = found + request.hit_tokens, total + len(prompt)
        cache.release(request)
    return found / total


# The functions the harness calls


def check(case: Sweep, bench: Bench) -> None:
    """The simulator meets its closed form at every point, before an engine is asked."""
    page = SMALL_PAGE if case.pattern == "page-32" else CPU_PAGE
    for prefix in PREFIXES:
        for overlap in OVERLAPS:
            prompts = prompts_of(bench, case, prefix, overlap)
            counted, expected = simulated(prompts, page, 4096), closed_form(prefix, overlap, page)
            if not abs(counted - expected) <= 1e-9:  # noqa: PLR2004  equal but for rounding
                raise WrongResult(
                    f"hit rate {counted:.4f} where the closed form gives {expected:.4f} at {prefix} tokens, {overlap:.0%}",
                    cause="the cache by page hashes or the closed form is wrong",
                    remedy="pytest tests/repro/engines tests/repro/sim",
                )


def prompts_of(bench: Bench, case: Sweep, prefix: int, overlap: float) -> list[tuple[int, ...]]:
    """The same prompts for the simulator and the engine; no two points share a token run."""
    rng = bench.rng(case, prefix * 1000 + round(overlap * 100))
    return overlapping(rng, prefix=prefix, own=OWN, overlap=overlap, count=REQUESTS)


def measure(case: Sweep, bench: Bench) -> Iterator[Measurement]:
    """Start the server, or ask the one that was given, and count."""
    flags = ("--block-size", "32") if case.pattern == "page-32" else ()
    with serving(Setup(flags=("--max-model-len", "4096", *flags)), bench.endpoint) as server:
        settings = server.counters.settings
        try:
            page, pages = (
                int(settings["block_size"]),
                int(settings["num_gpu_blocks"]) - 1,
            )  # one stands for none
        except (KeyError, ValueError) as error:
            raise CannotRun(
                f"{server.endpoint.url}: not measured",
                cause="its /metrics say nothing of its pages (block_size, num_gpu_blocks)",
                remedy="give the address of a vLLM",
            ) from error
        if case.pattern == "page-32" and page != SMALL_PAGE:
            raise CannotRun(
                f"pages of {SMALL_PAGE} tokens: not measured",
                cause=f"the server at {server.endpoint.url} has pages of {page}",
                remedy=f"start it with --block-size {SMALL_PAGE}",
            )
        if case.pattern == "as-installed" and server.own:
            yield from _settings(bench, settings, page)
        for prefix in PREFIXES:
            for overlap in OVERLAPS:
                prompts = prompts_of(bench, case, prefix, overlap)
                load = Load(pattern=case.pattern, prefix=prefix, overlap=overlap, page_tokens=page)
                hits = counted(server, prompts)
                yield bench.record("hit_rate", load, [hits], expected=simulated(prompts, page, pages))


def _settings(bench: Bench, settings: Mapping[str, str], page: int) -> Iterator[Measurement]:
    said = Said(
        prefix_caching=settings.get("enable_prefix_caching", ""),
        hash=settings.get("prefix_caching_hash_algo", ""),
        page_tokens=page,
    )
    yield bench.record("tokens", said, [page])
    try:
        yield bench.record("share", said, [float(settings.get("gpu_memory_utilization", ""))])
    except ValueError:
        return


def counted(server: Serving, prompts: Sequence[tuple[int, ...]]) -> float:
    """Hit rate by the engine's own counters, one request after another.

    Raises:
        CannotRun: A request failed, or somebody else used the server meanwhile.
    """
    before = read_counters(server.endpoint)
    asks = [Ask(0.0, prompt, 1) for prompt in prompts]
    terms = Terms(deadline_s=DEADLINE_S, most_open=1, open_loop=False, stop_failures=1)
    need_clean(drive(server.endpoint, server.model, asks, terms), "hit rate")
    grown = read_counters(server.endpoint).since(before)
    sent = sum(map(len, prompts))
    looked, found = grown.get("looked_up_tokens"), grown.get("hit_tokens")
    if looked is None or found is None or looked != sent or found > looked:
        raise CannotRun(
            f"{server.endpoint.url}: no hit rate",
            cause=f"{sent} prompt tokens were sent, it counts {looked} looked up and {found} found",
            remedy="use a server that nobody else uses, with its prefix cache on",
        )
    return found / looked


def default_cache(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """The cache is on without being asked for, hits as page hashes do, and pages and hash are as stated."""
    del claim
    said = next((one.case for one in taken if one.case.get("pattern") == "settings"), None)
    loads = [one for one in taken if one.metric == "hit_rate" and one.case.get("pattern") == "as-installed"]
    if said is None or not loads:
        return Outcome.UNTESTED, "no engine was started without options", "没有以默认选项启动的引擎"
    off = max(abs(fmean(one.samples) - (one.expected or 0.0)) for one in loads)
    page, name = int(said["page_tokens"]), said["hash"]
    words = f"its counters lie within {off:.2%} of the simulator over {len(loads)} loads; hash {name}, pages of {page}"
    zh = f"{len(loads)} 种负载下其计数与模拟器相差不超过 {off:.2%}；哈希 {name}，页为 {page} token"
    if said["prefix_caching"] != "True" or off > CLOSE:
        return False, f"not as stated: caching {said['prefix_caching']}, {words}", f"与所述不符：{zh}"
    if (page, name) != (STATED_PAGE, STATED_HASH):
        return (
            Outcome.PARTLY,
            f"on without being asked for, {words}: vLLM's CPU build chooses its own page",
            f"默认开启，{zh}：CPU 版自选页大小",
        )
    return True, f"on without being asked for, {words}", f"默认开启，{zh}"


def default(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """The engine's own description of itself gives the stated number."""
    said = sorted({sample for one in taken if one.metric == claim.metric for sample in one.samples})
    if not said:
        return Outcome.UNTESTED, "no engine was started without options", "没有以默认选项启动的引擎"
    shown = ", ".join(f"{value:g}" for value in said)
    return (
        said == [claim.low],
        f"a vLLM started without options says {shown}",
        f"以默认选项启动的 vLLM 自报 {shown}",
    )


judge = with_checks(default=default, **{"prefix-default": default_cache})


def figure(taken: Sequence[Measurement]) -> Sequence[Figure]:
    """Counted and simulated hit rate by prefix length, for each overlap."""
    loads = [one for one in taken if one.metric == "hit_rate" and one.case.get("pattern") == "page-32"]
    if not loads:
        return ()
    loads.sort(key=lambda one: int(one.case["prefix"]))
    lines = []
    for overlap in OVERLAPS:
        mine = [one for one in loads if one.case["overlap"] == overlap]
        for zh, en in (("引擎计数", "engine"), ("模拟", "simulated")):
            points = tuple(
                Point(
                    x=float(one.case["prefix"]),
                    y=fmean(one.samples) if en == "engine" else one.expected or 0.0,
                )
                for one in mine
            )
            lines.append(
                Series(
                    label=Text(zh=f"{overlap:.0%} 共享，{zh}", en=f"{overlap:.0%} share, {en}"), points=points
                )
            )
    off = max(abs(fmean(one.samples) - (one.expected or 0.0)) for one in loads)
    return (
        Figure(
            name="engine-hit-rate",
            repro="engine-prefix",
            title=Text(
                zh="真实 vLLM 的前缀命中率与页哈希模拟一致",
                en="A real vLLM hits its prefix cache as the cache by page hashes says",
            ),
            x=Text(zh="共享前缀长度（token）", en="shared prefix (tokens)"),
            y=Text(zh="命中率", en="hit rate"),
            x_scale="log2",
            series=tuple(lines),
            alt=Text(
                zh=f"{len(loads)} 个点，引擎自己的计数与模拟最多相差 {off:.2%}。",
                en=f"At {len(loads)} points the engine's own counters and the simulator differ by at most {off:.2%}.",
            ),
            topics=("inference",),
        ),
    )
