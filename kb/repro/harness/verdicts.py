"""From stored measurements to ``verdicts/<system>.json``: choose which records count, judge, keep what people decided."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import ValidationError

from kb.errors import WrongUse
from kb.files import digest
from kb.model import JUDGED, Claim, Figure, Item, LogEntry, Measurement, Outcome, Record, Verdict
from kb.repro.harness import wording
from kb.repro.harness.contract import Reproduction, Unit, load, units
from kb.repro.harness.digests import SHORT, claim_digest, rule_digest, source_digest
from kb.repro.harness.judge import LEVELS, unjudged
from kb.repro.harness.rules import effective_rule
from kb.store import Base


@dataclass(frozen=True)
class Evidence:
    """Records of one reproduction that may be judged together: one machine class, one code, one set of inputs."""

    unit: Unit
    env: str
    taken: tuple[Measurement, ...]

    @property
    def rank(self) -> tuple[bool, int, str]:
        """Own before imported without a digest; then the strongest level; then the newest."""
        levels = [LEVELS.index(one.level) for one in self.taken]
        return not is_unverified(self.taken[0]), max(levels), max(one.at for one in self.taken)


@dataclass
class Judged:
    """What judging a base needs, read once."""

    claims: Mapping[str, Claim]
    items: Mapping[str, Mapping[str, Item]] = field(default_factory=dict)
    rules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Digest of a set of rules → claim id → its rule as it was declared."""
    machines: Mapping[str, str] = field(default_factory=dict)
    blocked: Mapping[str, str] = field(default_factory=dict)
    """Reproduction → why its latest run could not."""


def is_unverified(one: Measurement) -> bool:
    """Whether a record was imported without the digest that would vouch for it."""
    return bool(one.imported) and one.imported.get("verified") != "yes"


def evidence(unit: Unit, measurements: Iterable[Measurement]) -> list[Evidence]:
    """Group the records of a reproduction so that machine classes and code versions never mix; best first.

    Runs of the same code on the same class of machine add up: their samples are judged together.
    """
    groups: dict[tuple[str, ...], dict[str, Measurement]] = {}
    for one in measurements:
        key = (one.env, one.code, one.inputs, one.rule, str(is_unverified(one)))
        groups.setdefault(key, {})[one.id] = one
    found = [Evidence(unit, key[0], tuple(records.values())) for key, records in groups.items()]
    newest: dict[tuple[str, bool], Evidence] = {}
    for group in found:
        place = (group.env, is_unverified(group.taken[0]))
        if place not in newest or _latest(group) >= _latest(newest[place]):
            newest[place] = group
    return sorted(newest.values(), key=lambda group: group.rank, reverse=True)


def _latest(one: Evidence) -> str:
    return max(record.at for record in one.taken)


def judge_evidence(found: Evidence, judged: Judged) -> list[Verdict]:
    """Judge the claims of a reproduction from one group of records and sign what the verdicts rest on."""
    claims = [judged.claims[name] for name in found.unit.claims if name in judged.claims]
    module = load(found.unit)
    return [_sign(verdict, found, judged) for verdict in module.judge(claims, found.taken)]


def _sign(verdict: Verdict, found: Evidence, judged: Judged) -> Verdict:
    claim = judged.claims[verdict.claim]
    first = found.taken[0]
    if verdict.verdict in JUDGED and verdict.level is not None:
        declared = judged.rules.get(first.rule, {}).get(claim.id)
        now = effective_rule(claim)
        if declared is not None and declared != now:
            text, text_zh = wording.rule_edited(claim.id, _changes(declared, now), found.unit.name)
            verdict = verdict.model_copy(
                update={"verdict": Outcome.INCONCLUSIVE, "reason": text, "reason_zh": text_zh}
            )
    if verdict.level is None:
        return verdict.model_copy(update={"repro": found.unit.name})
    return verdict.model_copy(
        update={
            "repro": found.unit.name,
            "machine": judged.machines.get(found.env, ""),
            "env": found.env,
            "run": digest(sorted(one.id for one in found.taken))[:SHORT],
            "digests": {
                **verdict.digests,
                "source": source_digest(claim, judged.items),
                "claim": claim_digest(claim),
                "rule": rule_digest([claim]),
                "code": first.code,
                "inputs": first.inputs,
                "environment": found.env,
            },
        }
    )


def _changes(declared: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    keys = [key for key in now if declared.get(key) != now[key]]
    return ", ".join(f"{key} {declared.get(key)} → {now[key]}" for key in keys)


def best(candidates: Sequence[Verdict]) -> Verdict:
    """Pick the verdict that counts: one that judged, then the strongest level, then the newest."""

    def rank(verdict: Verdict) -> tuple[bool, int, bool, str, str]:
        level = LEVELS.index(verdict.level) if verdict.level else -1
        untested = verdict.verdict is not Outcome.UNTESTED
        return verdict.verdict in JUDGED, level, untested, verdict.at, verdict.repro

    return max(candidates, key=rank)


def refresh(base: Base, systems: Iterable[str], *, blocked: Mapping[str, str] | None = None) -> list[Verdict]:
    """Judge the claims of some systems again from what is stored, without running anything; nothing is written.

    Args:
        base: The knowledge base.
        systems: Whose claims.
        blocked: Reproductions that could not run just now, with the cause.

    Returns:
        One verdict per claim of these systems, sorted by claim; untested, with what is planned, where no reproduction
        speaks to it.
    """
    wanted = set(systems)
    judged = read_judged(base, wanted, blocked or {})
    candidates: dict[str, list[Verdict]] = {}
    apart: dict[str, list[Verdict]] = {}
    for unit in units().values():
        if not wanted & set(unit.systems):
            continue
        found = evidence(unit, base.measurements(unit.name))
        own = [one for one in found if not is_unverified(one.taken[0])]
        for verdict in [v for one in own for v in judge_evidence(one, judged)] or _nothing(unit, judged):
            candidates.setdefault(verdict.claim, []).append(verdict)
        for verdict in [v for one in found if one not in own for v in judge_evidence(one, judged)]:
            apart.setdefault(verdict.claim, []).append(verdict)
    chosen = {name: _best_of(group, apart.get(name, [])) for name, group in candidates.items()}
    overrulings = latest_overrulings(base.log())
    for name in judged.claims.keys() - chosen.keys():
        chosen[name] = unjudged(judged.claims[name], Outcome.UNTESTED, *wording.untested(judged.claims[name]))
    return [
        overrule(verdict, overrulings.get(name))
        for name, verdict in sorted(chosen.items())
        if name.partition("/")[0] in wanted
    ]


def _best_of(own: Sequence[Verdict], apart: Sequence[Verdict]) -> Verdict:
    """Our own evidence first; a run nobody vouches for only where there is none, and the reason says so."""
    first = best(own)
    judging = [verdict for verdict in apart if verdict.verdict in JUDGED]
    if first.verdict in JUDGED or not judging:
        return first
    second = best(judging)
    reason, reason_zh = wording.not_vouched(second.reason, second.reason_zh)
    return second.model_copy(update={"reason": reason, "reason_zh": reason_zh})


def read_judged(base: Base, systems: Iterable[str], blocked: Mapping[str, str]) -> Judged:
    """Read what judging the claims of some systems needs from a base."""
    there = [name for name in sorted(set(systems)) if (base.root / f"claims/{name}.toml").is_file()]
    machines = {name: environment.machine for name, environment in base.environments().items()}
    return Judged(base.claims(there), base.latest_items(), base.declared_rules(), machines, blocked)


def _nothing(unit: Unit, judged: Judged) -> list[Verdict]:
    claims = [judged.claims[name] for name in unit.claims if name in judged.claims]
    if cause := judged.blocked.get(unit.name):
        return [unjudged(claim, Outcome.BLOCKED, *wording.blocked(cause)) for claim in claims]
    named = {"repro": unit.name}
    return [verdict.model_copy(update=named) for verdict in load(unit).judge(claims, ())]


def record_rest(base: Base) -> list[str]:
    """Record that nothing tests the claims of systems no reproduction speaks to; the systems whose file changed.

    The caller holds the lock.
    """
    spoken = {system for unit in units().values() for system in unit.systems}
    rest = {name.partition("/")[0] for name in base.claims()} - spoken
    return write_verdicts(base, refresh(base, rest))


def write_verdicts(base: Base, verdicts: Iterable[Verdict]) -> list[str]:
    """Write verdicts into the files of their systems; the systems whose file changed. The caller holds the lock."""
    by_system: dict[str, list[Verdict]] = {}
    before = base.verdicts()
    for verdict in verdicts:
        dated = verdict.model_copy(update={"since": _since(verdict, before.get(verdict.claim))})
        by_system.setdefault(verdict.claim.partition("/")[0], []).append(dated)
    return [name for name, group in sorted(by_system.items()) if base.write_verdicts(name, group)]


_OF_THE_RUN = {"at", "since", "run", "env", "digests"}


def _since(verdict: Verdict, before: Verdict | None) -> str:
    """Since when a verdict says what it says: the same found again is no news, so pages need not change."""
    if before is None:
        return verdict.at
    same = before.model_dump(exclude=_OF_THE_RUN) == verdict.model_dump(exclude=_OF_THE_RUN)
    return (before.since or before.at) if same else verdict.at


def latest_overrulings(log: Iterable[LogEntry]) -> dict[str, LogEntry]:
    """Last overruling of each claim; one to nothing takes it back."""
    found = {entry.target: entry for entry in log if entry.act == "overrule"}
    return {target: entry for target, entry in found.items() if entry.to}


def overrule(verdict: Verdict, entry: LogEntry | None) -> Verdict:
    """Put a person's decision over the numbers; the numbers stay beside it.

    A decision that the numbers cannot carry (the log names no outcome, or one that needs a measurement where there is
    none) changes nothing, and the reason says so.
    """
    if entry is None:
        return verdict
    record = {"by": entry.who, "reason": entry.reason, "at": entry.at, "rule_says": verdict.verdict.value}
    reason = f"{entry.who} overruled {verdict.verdict}: {entry.reason}; the numbers: {verdict.reason}"
    zh = f"{entry.who} 改判（原为 {verdict.verdict}）：{entry.reason}；数据：{verdict.reason_zh}"
    values = {
        **verdict.model_dump(),
        "verdict": entry.to,
        "reason": reason,
        "reason_zh": zh,
        "overruled": record,
    }
    try:
        return Verdict.model_validate(values)
    except ValidationError:
        said, said_zh = wording.not_overruled(entry.who, entry.to)
        return verdict.model_copy(
            update={"reason": f"{verdict.reason}; {said}", "reason_zh": f"{verdict.reason_zh}；{said_zh}"}
        )


def check_overruling(base: Base, claims: Iterable[str], to: str) -> None:
    """See that the numbers of some claims could carry an overruling, before it is logged.

    Raises:
        WrongUse: One of them could not.
    """
    known, stored = base.claims(), base.verdicts()
    for name in claims:
        nothing = unjudged(known[name], Outcome.UNTESTED, *wording.untested(known[name]))
        entry = LogEntry(id="-", seq=1, at="", who="-", act="overrule", target=name, to=to)
        if to and not overrule(stored.get(name, nothing), entry).overruled:
            raise WrongUse(
                f"{name}: not overruled to {to}",
                cause="nothing was measured that could carry it",
                remedy="run it first, or choose an outcome that needs no numbers",
                next_command=f"kb verdict {name} --explain",
            )


def of_run(unit: Unit, taken: Sequence[Measurement], judged: Judged) -> list[Verdict]:
    """Verdicts of one run by itself, as ``--quick`` shows them."""
    if not taken:
        return _nothing(unit, judged)
    return judge_evidence(Evidence(unit, taken[0].env, tuple(taken)), judged)


def write_figures(base: Base, unit: Unit, module: Reproduction[Record]) -> list[str]:
    """Write the figures of a reproduction from its best evidence; the names of those that changed."""
    found = evidence(unit, base.measurements(unit.name))
    if not found:
        return []
    there = [system for system in unit.systems if (base.root / f"claims/{system}.toml").is_file()]
    figures = draw(module, found[0].taken, base.claims(there))
    return [figure.name for figure in figures if base.write_figure(figure)]


def draw(
    module: Reproduction[Record], taken: Sequence[Measurement], claims: Mapping[str, Claim]
) -> Sequence[Figure]:
    """Figures of a module; one that shows what a source states takes the claims as its second parameter."""
    make = cast("Callable[..., Sequence[Figure]]", module.figure)
    if len(inspect.signature(make).parameters) > 1:
        return make(taken, claims)
    return make(taken)
