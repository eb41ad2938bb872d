"""How `kb repro sd-latency` judges: each claim by a named check over stored records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kb.model import Claim, Measurement, Outcome
from kb.repro.harness.judge import Answer
from kb.repro.sim.sd_law import DRAFTED, OUTPUT, PLAIN, STEADY, break_even, engine_ratios, speed_up
from kb.repro.sim.stepper import fit

CLOSE_E, CLOSE_FIT, CLOSE_SPEED, CLOSE_LOAD = 0.005, 0.03, 0.05, 0.05
"""Bands of the project's plan: E 0.5 %, C1 and C2 3 %, speed-up 5 %, break-even ± 0.05 of the load."""


def load_curve(taken: Sequence[Measurement], name: str) -> list[tuple[float, float]]:
    """(load, mean latency) of one engine, by load."""
    return sorted(
        (float(one.case["load"]), float(np.mean(one.samples)))
        for one in taken
        if one.case.get("part") == "load" and one.case["name"] == name
    )


def _part(taken: Iterable[Measurement], part: str) -> list[Measurement]:
    return [one for one in taken if one.case.get("part") == part]


def check_tokens(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Tokens per pass within 0.5 % of the closed form."""
    del claim
    pairs = [(one.samples[0], one.expected or 1.0) for one in _part(taken, "tokens")]
    off = max(abs(drawn / formula - 1) for drawn, formula in pairs)
    return (
        off <= CLOSE_E,
        f"over {len(pairs)} draws the formula is off by at most {off:.2%}",
        f"{len(pairs)} 组抽样中公式最多偏差 {off:.2%}",
    )


def check_closed_form(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """C1 and C2 fitted to the simulated loads within 3 % of their closed forms, for both engines."""
    del claim
    worst, shown = 0.0, []
    for name, engine in (("plain", PLAIN), ("drafted", DRAFTED)):
        curve = np.array(load_curve(taken, name))
        rates = curve[:, 0] / PLAIN.coefficients(OUTPUT)[1]
        c1, c2, _ = fit(rates, curve[:, 1])
        true1, true2 = engine.coefficients(OUTPUT)
        worst = max(worst, abs(c1 / true1 - 1), abs(c2 / true2 - 1))
        shown.append(f"{name} C1 {c1:.3f} ({true1:.3f}), C2 {c2:.4f} ({true2:.4f})")
    return (
        worst <= CLOSE_FIT,
        f"fitted beside closed form, s: {'; '.join(shown)}; off by at most {worst:.1%}",
        f"拟合值与闭式（秒）：{'；'.join(shown)}；最多偏差 {worst:.1%}",
    )


def check_curve(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """R² of ``1/(1 - x)`` over the loads of each engine, not below the least stated."""
    found = []
    for name in ("plain", "drafted"):
        curve = np.array(load_curve(taken, name))
        found.append(fit(curve[:, 0], curve[:, 1])[2])
    return (
        min(found) >= (claim.low or 0.0),
        f"R² of 1/(1 - x) over the simulated loads: {found[0]:.4f} without and {found[1]:.4f} with speculation",
        f"模拟负载上 1/(1 - x) 的 R²：无投机 {found[0]:.4f}，有投机 {found[1]:.4f}",
    )


def speed_ups(taken: Sequence[Measurement]) -> list[tuple[float, float]]:
    loads, latencies = np.array(load_curve(taken, "plain")).T
    # both fits are smooth in 1/L, so plain latency between two loads is read off its reciprocal
    return [
        (load, 1 / float(np.interp(load, loads, 1 / latencies)) / latency)
        for load, latency in load_curve(taken, "drafted")
    ]


def check_law(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Simulated speed-up within 5 % of the law at every load, and gone within 0.05 of r*."""
    del claim
    points, (c1_ratio, c2_ratio) = speed_ups(taken), engine_ratios()
    # near saturation a small error of C2 is a large one of the latency; the paper leaves that region out as well
    steady = [(load, seen) for load, seen in points if load * c2_ratio <= STEADY]
    worst = max(abs(seen / speed_up(load, c1_ratio, c2_ratio) - 1) for load, seen in steady)
    loads, seen = zip(*points, strict=True)
    crossing = float(np.interp(-1.0, -np.array(seen), np.array(loads)))
    target = break_even(c1_ratio, c2_ratio)
    return (
        worst <= CLOSE_SPEED and abs(crossing - target) <= CLOSE_LOAD,
        f"simulated speed-up is within {worst:.1%} of the law; it is gone at load {crossing:.2f}, r* = {target:.2f}",
        f"模拟加速比与公式最多相差 {worst:.1%}；在负载 {crossing:.2f} 处消失，r* = {target:.2f}",
    )


def check_decay(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Where C2R exceeds one the speed-up falls with load."""
    del claim
    points, (_, c2_ratio) = speed_ups(taken), engine_ratios()
    first, last = points[0][1], points[-1][1]
    return (
        last < first if c2_ratio > 1 else None,
        f"C2R = {c2_ratio:.2f}: the speed-up falls from {first:.2f} at load {points[0][0]} to {last:.2f} at {points[-1][0]}",
        f"C2R = {c2_ratio:.2f}：加速比从负载 {points[0][0]} 的 {first:.2f} 降到 {points[-1][0]} 的 {last:.2f}",
    )


def _grid(taken: Sequence[Measurement], which: str) -> dict[tuple[float, int], float]:
    return {
        (one.case["acceptance_rate"], one.case["draft_length"]): one.samples[0]
        for one in _part(taken, "ratios")
        if str(one.case["name"]).startswith(which)
    }


def check_c1(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """C1R below one everywhere on the grid, by roofline."""
    del claim
    ratios = _grid(taken, "c1")
    over = {point for point, ratio in ratios.items() if ratio >= 1}
    return (
        Outcome.HOLDS if not over else Outcome.PARTLY,
        f"by roofline C1R is below one at {len(ratios) - len(over)} of {len(ratios)} points, from {min(ratios.values()):.2f}",
        f"按 roofline，{len(ratios)} 个点中有 {len(ratios) - len(over)} 个 C1R 小于一，最小 {min(ratios.values()):.2f}",
    )


def check_c2(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """C2R above one at most points with acceptance below 0.9, by roofline."""
    del claim
    ratios = {point: ratio for point, ratio in _grid(taken, "c2").items() if point[0] < 0.9}  # noqa: PLR2004
    over = [point for point, ratio in ratios.items() if ratio > 1]
    share = len(over) / len(ratios)
    outcome = Outcome.HOLDS if share > 0.5 else Outcome.PARTLY if over else Outcome.CONTRADICTED  # noqa: PLR2004
    return (
        outcome,
        f"by roofline C2R exceeds one at {len(over)} of {len(ratios)} points with acceptance below 0.9",
        f"按 roofline，接受率低于 0.9 的 {len(ratios)} 个点中有 {len(over)} 个 C2R 大于一",
    )


def check_order(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """The draft length that is best without load is longer than the one best under load, at every acceptance rate."""
    del claim
    first, second = _grid(taken, "c1"), _grid(taken, "c2")
    rates = sorted({rate for rate, _ in first})
    best = {
        rate: tuple(
            min((k for r, k in grid if r == rate), key=lambda k: grid[rate, k]) for grid in (first, second)
        )
        for rate in rates
    }
    shown = ", ".join(f"{rate}: {a} and {b}" for rate, (a, b) in best.items())
    good = sum(a > b for a, b in best.values())
    outcome = Outcome.HOLDS if good == len(best) else Outcome.PARTLY if good else Outcome.CONTRADICTED
    return (
        outcome,
        f"best draft length without and under load by acceptance rate: {shown}",
        f"各接受率下零负载与高负载的最优草稿长度：{shown}",
    )


MOE_FIT, MOE_LIFT = 0.97, 0.03
"""Least R² with coverage, and least lift over the dense form, for the correction to count as reproduced."""
TOLD, OVERSTATED = 0.95, 3.0
"""R² from which pooled coefficients predict; factor over the drafter's share of parameters from which they mislead."""


def check_pooled(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Whether six pooled coefficients predict every configuration, and whether the drafter's is the drafter's."""
    del claim
    found = {one.metric: one.samples[0] for one in taken}
    r2, factor, rank = found["fit_r2"], found["factor"], round(found["count"])
    outcome = Outcome.CONTRADICTED if r2 < TOLD else Outcome.PARTLY if factor >= OVERSTATED else Outcome.HOLDS
    return (
        outcome,
        (
            f"fitted to roofline curves the six coefficients predict latency with R² {r2:.3f}, but the drafter's share of the "
            f"load cost comes out {factor:.1f} times its share of the parameters: it has taken up the verifier's extra tokens; "
            f"with a term for those, {rank} of 7 coefficients can be told apart"
        ),
        (
            f"用 roofline 曲线拟合，六个系数预测延迟的 R² 为 {r2:.3f}，但草稿在负载项中的占比是其参数占比的 {factor:.1f} 倍：它吸收了"
            f"验证多余 token 的开销；再加一项时，7 个系数中只有 {rank} 个可辨识"
        ),
    )


def check_mixture(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Lift of R² by the coverage term, for routing drawn evenly and unevenly."""
    del claim
    fits: dict[str, dict[str, list[float]]] = {}
    for one in taken:
        fits.setdefault(str(one.case["pattern"]), {}).setdefault(str(one.case["form"]), []).extend(
            one.samples
        )
    rows = {
        name: (float(np.mean(forms["dense"])), float(np.mean(forms["coverage"])))
        for name, forms in fits.items()
    }
    good = all(wide >= MOE_FIT for _, wide in rows.values())
    lifted = all(wide - dense >= MOE_LIFT for dense, wide in rows.values())
    outcome = Outcome.HOLDS if good and lifted else Outcome.PARTLY if good else Outcome.CONTRADICTED
    shown = "; ".join(f"{name} routing {dense:.3f} to {wide:.3f}" for name, (dense, wide) in rows.items())
    zh = {"even": "均匀路由", "uneven": "偏斜路由"}
    shown_zh = "；".join(
        f"{zh.get(name, name)} {dense:.3f} 到 {wide:.3f}" for name, (dense, wide) in rows.items()
    )
    return (
        outcome,
        (
            f"on roofline curves with experts counted from drawn routing, R² over the lower half of the loads goes from dense to "
            f"coverage: {shown}; a lift of {MOE_LIFT} to at least {MOE_FIT} is asked for"
        ),
        f"按抽样路由计数专家的 roofline 曲线，低半负载上 R² 由稠密形式到覆盖形式：{shown_zh}；要求提升 {MOE_LIFT} 且不低于 {MOE_FIT}",
    )


def check_reachable(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """What acceptance a stated speed-up without load would take; the acceptance itself is not stated."""
    best: dict[float, float] = {}
    for one in taken:
        rate = float(one.case["acceptance_rate"])
        best[rate] = max(best.get(rate, 0.0), one.samples[0])
    stated = claim.low or 0.0
    enough = [rate for rate, factor in sorted(best.items()) if factor >= stated]
    shown = ", ".join(f"{factor:.2f} at {rate}" for rate, factor in sorted(best.items()))
    shown_zh = "、".join(f"{rate} 时 {factor:.2f}" for rate, factor in sorted(best.items()))
    if not enough:
        return False, f"by roofline at most {shown}", f"按 roofline 最多 {shown_zh}"
    return (
        None,
        (
            f"by roofline the best draft length gives, by acceptance, {shown}: {stated:g} takes an acceptance of {enough[0]}, "
            "which the source does not state"
        ),
        f"按 roofline，最优草稿长度下各接受率的加速为 {shown_zh}：{stated:g} 倍需要接受率 {enough[0]}，来源未说明",
    )


CHECKS = {
    "tokens": check_tokens,
    "closed-form": check_closed_form,
    "curve": check_curve,
    "law": check_law,
    "decay": check_decay,
    "c1": check_c1,
    "c2": check_c2,
    "order": check_order,
    "pooled": check_pooled,
    "mixture": check_mixture,
    "reachable": check_reachable,
}
"""Named checks of the claims' rules."""
