"""RAIDS, arxiv:2606.21831: a vision without numbers; does state that travels with a value catch what goes wrong on the way?

Backs     raids/contract · preservation
Question  Figures pass a pipeline of five operators. Each hands on the value with support (what it rests on), constraints
          (what must hold of it) and an action (what may be done with it). Twelve faults are planted, six of them the
          kinds of misquotation that the drafts of this base contain; counted is what is refused before publication, with
          all three states, with one left out, and by a pipeline that looks at the value alone.
Shows not A data system. Faults and checks are by one hand, so the shares say that the idea can work, not how well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kb.files import digest
from kb.model import Claim, Measurement, Outcome
from kb.repro.harness.exact import Quantity, by_claim, exact, no_figure
from kb.repro.harness.judge import Answer

CLAIMS = ("raids/contract", "raids/preservation")
LEVELS = ("derived",)
NEEDS = ()
ACTIONS = ("refuse", "review", "caveat", "publish")
"""What may be done with a figure, least first."""
GRADES = "DCBA"
UNITS = ("ms", "s", "GB", "tok/s")
LICENCES = ("mit", "apache-2.0")


@dataclass(frozen=True)
class Source:
    """What an operator may look up again: the passage a figure was read in, and what is known of it."""

    name: str
    passage: str
    version: int
    licence: str


@dataclass(frozen=True)
class Figure:
    """A value on its way, with the three states."""

    value: float
    unit: str
    bound: str
    baseline: str
    # support
    source: str
    locator: str
    grade: str
    evidence: tuple[str, ...]
    # constraints
    version: int
    licence: str
    band: str
    """Digest of the acceptance band, fixed before the run."""
    # action
    action: str


def passage(value: float, unit: str, bound: str, baseline: str) -> str:
    """The words a source states a figure in."""
    return f"{bound} {value:g} {unit} against {baseline}"


def source_and_figure(rng: np.random.Generator, number: int) -> tuple[Source, Figure]:
    """A source and the figure that was read out of it, right in every part."""
    value = round(float(rng.uniform(2, 90)), 1)
    unit, bound = str(rng.choice(UNITS)), str(rng.choice(("exactly", "up to", "about")))
    baseline = f"system {rng.integers(9)}"
    source = Source(f"paper {number}", passage(value, unit, bound, baseline), int(rng.integers(1, 4)), "mit")
    grade = str(rng.choice(list("ABC")))
    figure = Figure(
        value, unit, bound, baseline, source.name, f"table {rng.integers(1, 9)}", grade,
        (digest(source.passage),), source.version, source.licence, digest([number, "band"]),
        ACTIONS[2] if grade == "C" else ACTIONS[3],
    )  # fmt: skip
    return source, figure


Fault = Callable[[Figure], Figure]
FAULTS: dict[str, Fault] = {
    "value": lambda f: replace(f, value=round(f.value * 1.2, 1)),
    "unit": lambda f: replace(f, unit="s" if f.unit == "ms" else "ms"),
    "bound": lambda f: replace(f, bound="exactly" if f.bound != "exactly" else "up to"),
    "baseline": lambda f: replace(f, baseline="another system"),
    "attribution": lambda f: replace(f, source="another paper"),
    "not-in-source": lambda f: replace(f, evidence=(digest("a draft"),)),
    "locator-dropped": lambda f: replace(f, locator=""),
    "evidence-twice": lambda f: replace(f, evidence=f.evidence * 2, grade="A" if f.grade != "A" else "B"),
    "stale-version": lambda f: replace(f, version=f.version - 1),
    "licence-lost": lambda f: replace(f, licence="unknown"),
    "band-edited": lambda f: replace(f, band=digest("edited after the run")),
    "action-raised": lambda f: replace(f, grade="C", action=ACTIONS[3]),
}
"""The first six are the kinds of `kb.vocab.RELAY_MATCHES`; the others lose or raise state on the way."""


def support(figure: Figure, source: Source, before: Figure) -> bool:
    """The evidence still says this figure, and says it once; no operator raises the grade."""
    words = passage(figure.value, figure.unit, figure.bound, figure.baseline)
    return (
        bool(figure.locator)
        and figure.source == source.name
        and figure.evidence == (digest(words),) == (digest(source.passage),)
        and GRADES.index(figure.grade) <= GRADES.index(before.grade)
    )


def constraint(figure: Figure, source: Source, before: Figure) -> bool:
    """What must hold of it: a known unit, the source's version, a licence that allows quoting, the declared band."""
    return (
        figure.unit in UNITS
        and figure.version == source.version
        and figure.licence in LICENCES
        and figure.band == before.band
    )


def actionability(figure: Figure, source: Source, before: Figure) -> bool:
    """What may be done follows from the grade, and no operator raises it."""
    del source
    most = ACTIONS.index("caveat" if figure.grade in "CD" else "publish")
    return ACTIONS.index(figure.action) <= min(most, ACTIONS.index(before.action))


PARTS = {"support": support, "constraint": constraint, "actionability": actionability}


def plain(figure: Figure) -> bool:
    """What a pipeline checks that looks at the value alone: a number with a known unit and a named source."""
    return np.isfinite(figure.value) and figure.unit in UNITS and bool(figure.source)


def passes(figure: Figure, source: Source, fault: Fault | None, parts: Sequence[str], at: int) -> bool:
    """Whether a figure reaches publication through five operators, one of which may do wrong.

    Args:
        figure: As it was read.
        source: What it was read in.
        fault: What the wrong operator does; None for none.
        parts: States that are checked; none for the plain pipeline.
        at: Which operator does wrong, 0–4.
    """
    for step in range(5):
        after = fault(figure) if fault and step == at else figure
        if not plain(after) or not all(PARTS[part](after, source, figure) for part in parts):
            return False
        figure = after
    return True


def refused(rng: np.random.Generator, cases: float, checked: float, faulty: float) -> list[float]:
    """Share of figures refused: of each planted fault where ``faulty``, else of figures without one.

    Args:
        rng: Source of draws.
        cases: Figures per fault.
        checked: 0 none, 1–3 all states but that one, 4 all three.
        faulty: 1 plants faults, 0 does not.
    """
    names = list(PARTS)
    parts = [] if not checked else [n for i, n in enumerate(names, 1) if i != checked]
    found = []
    for fault in FAULTS.values() if faulty else [None]:
        drawn = [source_and_figure(rng, number) for number in range(int(cases))]
        kept = [passes(f, s, fault, parts, int(rng.integers(5))) for s, f in drawn]
        found.append(1 - float(np.mean(kept)))
    return found


def _shares(taken: Sequence[Measurement]) -> dict[str, float]:
    return {str(one.case["pattern"]): float(np.mean(one.samples)) for one in taken}


def parts_check(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """As many states are needed as stated: leaving any one out lets some fault pass that all together stop."""
    shares = _shares(taken)
    needed = sum(shares[f"without-{name}"] < shares["all-states"] for name in PARTS)
    shown = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    return (
        Outcome.HOLDS if needed == claim.low else Outcome.PARTLY if needed else Outcome.CONTRADICTED,
        f"{needed} of {len(PARTS)} states stop faults that the others let pass; refused: {shown}",
        f"{len(PARTS)} 种状态中 {needed} 种能拦住其余状态放过的错误；拦截率：{shown}",
    )


DETECTED, ALARMS = 0.95, 0.02


def preserved(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """At least 95 % of planted faults are refused, at most 2 % of sound figures."""
    del claim
    shares = _shares(taken)
    caught, alarms, bare = shares["all-states"], shares["no-fault"], shares["value-alone"]
    outcome = (
        Outcome.HOLDS
        if caught >= DETECTED and alarms <= ALARMS
        else Outcome.PARTLY
        if caught > bare
        else Outcome.CONTRADICTED
    )
    text = (
        f"with the three states {caught:.1%} of planted faults are refused and {alarms:.1%} of sound figures; a "
        f"pipeline that looks at the value alone refuses {bare:.1%}; faults and checks are by one hand"
    )
    text_zh = (
        f"带三种状态时拦住 {caught:.1%} 的植入错误，误拦 {alarms:.1%}；"
        f"只看数值的流水线拦住 {bare:.1%}；错误与检查出自同一人之手"
    )
    return outcome, text, text_zh


WITHOUT_NUMBER = "the claim states no number: shares of planted faults are compared"
CHECKED = {4: "all-states", 1: "without-support", 2: "without-constraint", 3: "without-actionability"}
QUANTITIES = (
    *(
        Quantity("raids/contract", refused, {"checked": checked, "cases": 40, "faulty": 1}, pattern=name)
        for checked, name in CHECKED.items()
    ),
    *(
        Quantity(
            "raids/preservation",
            refused,
            {"checked": checked, "cases": 40, "faulty": faulty},
            pattern=name,
            insensitive=WITHOUT_NUMBER,
        )
        for checked, faulty, name in ((4, 1, "all-states"), (0, 1, "value-alone"), (4, 0, "no-fault"))
    ),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim({"parts": parts_check, "preserved": preserved})
figure = no_figure
