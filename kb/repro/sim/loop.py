"""The serving engine, step by step, in plain Python: what each rule means, and the oracle of the compiled loop.

One step: requests that run go on, in order, each with the known tokens it has not computed, within the token budget;
whom no page can be found for takes the pages of the last in the list, which starts again from the front of the queue;
if nobody was preempted, waiting requests start as long as budget, sequences and pages allow. A prompt longer than the
rest of the budget is cut into chunks. The step that computes the last known token emits the next. Source: the
scheduler of vLLM V1. Preemptive policies walk through all requests in order of their key instead.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

import numpy as np

from kb.repro.sim import policies
from kb.repro.sim.checks import check_fit
from kb.repro.sim.draws import acceptance_steps, accepted_drafts
from kb.repro.sim.gap_bins import gap_bin
from kb.repro.sim.jobs import Job, Part, empty_run
from kb.repro.sim.memory import HashMemory, Holder, Memory, RadixMemory
from kb.repro.sim.work import NOBODY, Cost, Engine, Requests, Run, StepCost, StepWork


class Loop:
    """One engine and its clock."""

    def __init__(self, requests: Requests, engine: Engine, cost: Cost) -> None:
        self.requests = requests
        self.engine = engine
        self.policy = policies.find(engine.policy)
        self.weights = self.policy.order.weights()
        self.seconds = cost.seconds if isinstance(cost, StepCost) else cost
        self.memory: Memory = (
            RadixMemory(engine.pages) if engine.prefix_cache == "radix" else HashMemory(engine.pages)
        )
        self.now = 0.0
        self.present = 0
        self.promised_pages = 0
        self.plans = 0
        self.running: list[Job] = []
        self.waiting: list[tuple[float, int, Job]] = []
        self.steps: deque[tuple[StepWork, list[Part]]] = deque()
        self.run = empty_run(requests)
        self.accept_below = acceptance_steps(engine.acceptance_rate, engine.draft_length)
        self.chained: list[tuple[float, int]] = []
        """Arrivals of requests that waited for another's end, soonest first."""
        free = np.arange(len(requests)) if requests.after is None else np.flatnonzero(requests.after < 0)
        self.scheduled = deque(free.tolist())
        self.follower: dict[int, int] = {}
        if requests.after is not None:
            self.follower = {int(a): i for i, a in enumerate(requests.after) if a != NOBODY}

    # Arrivals

    def next_arrival(self) -> float:
        """Time of the next arrival, infinity if none is known."""
        times = [float("inf")]
        if self.scheduled:
            times.append(float(self.requests.arrival[self.scheduled[0]]))
        if self.chained:
            times.append(self.chained[0][0])
        return min(times)

    def arrive(self) -> None:
        """Let everybody in whose time has come; the area under the count gets what they waited before this."""
        while (time := self.next_arrival()) <= self.now:
            if self.chained and self.chained[0][0] == time:
                number = heappop(self.chained)[1]
            else:
                number = self.scheduled.popleft()
            requests = self.requests
            contents: list[int] = []
            if (
                self.engine.prefix_cache != "none"
                and requests.page_from is not None
                and requests.page_ids is not None
            ):
                begin, end = requests.page_from[number], requests.page_from[number + 1]
                contents = requests.page_ids[begin:end].tolist()
            prompt, output = int(requests.prompt[number]), int(requests.output[number])
            job = Job(number, time, prompt, output, Holder(contents))
            if requests.ready is not None:
                job.swapped = int(
                    requests.ready[number]
                )  # its entries come over a link: pages, but no computing
            self.run.arrival[number] = time
            self.run.area += self.now - time
            self.present += 1
            self.enqueue(job)

    def enqueue(self, job: Job) -> None:
        job.running = False
        heappush(self.waiting, (self.key(job), job.id, job))

    def key(self, job: Job) -> float:
        """Priority, least first."""
        w = self.weights
        total = w[0] * job.arrival
        total += w[1] * job.prompt
        total += w[2] * job.output
        total += w[3] * (job.known - job.computed)
        total += w[4] * (job.output - job.promised)
        total += w[5] * job.peak
        if w[6]:
            total += w[6] * (self.found_pages(job) * self.engine.page_tokens)
        return total

    # Memory

    def pages_for(self, tokens: int) -> int:
        return -(-tokens // self.engine.page_tokens)

    def found_pages(self, job: Job) -> int:
        """Leading pages in the cache that leave one token to compute."""
        if job.swapped:
            return 0
        return self.memory.found(job.holder, (job.known - 1) // self.engine.page_tokens)

    def start(self, job: Job) -> int | None:
        """Take the pages a waiting request finds and make sure that the rest fits.

        Returns:
            KV tokens to move from the host; None, and nothing taken, if it does not fit.
        """
        whole = self.pages_for(job.prompt + job.output + self.engine.draft_length)
        if self.engine.admission == "whole" and self.promised_pages + whole > self.engine.pages:
            return None
        found = self.found_pages(job)
        if self.memory.missing(job.holder, found, self.pages_for(job.known)) > self.memory.free:
            return None
        self.memory.start(job.holder, found)
        moved, job.swapped = job.swapped, 0
        if moved:
            self.memory.grow(job.holder, self.pages_for(moved))
        job.computed = moved or found * self.engine.page_tokens
        self.run.reused[job.id] += job.computed
        if not job.started:
            self.run.hits[job.id] = found * self.engine.page_tokens
            job.started = True
        self.promised_pages += whole
        job.running = True
        job.peak = max(job.peak, job.computed)
        return 0 if self.requests.ready is not None and not self.run.preemptions[job.id] else moved

    def leave(self, job: Job) -> None:
        """Give a request's pages back."""
        self.memory.name(job.holder, min(job.computed, job.known) // self.engine.page_tokens)
        self.memory.release(job.holder)
        self.promised_pages -= self.pages_for(job.prompt + job.output + self.engine.draft_length)

    def preempt(self, job: Job) -> int:
        """Throw a request out; the KV tokens moved to the host."""
        self.running.remove(job)
        self.leave(job)
        self.run.preemptions[job.id] += 1
        moved = job.swapped = job.computed if self.engine.preemption == "swap" else 0
        self.run.lost[job.id] += job.computed
        job.computed = 0
        self.enqueue(job)
        return moved

    # One step

    def plan(self) -> None:
        """Decide the next step from what is known now."""
        self.parts: list[Part] = []
        self.budget = self.engine.token_budget
        self.work = [0] * len(StepWork._fields)
        self.plans += 1
        if self.weights[6]:  # what the cache holds has changed since they came
            self.waiting = [(self.key(job), job.id, job) for _, _, job in self.waiting]
            self.waiting.sort()
        if self.policy.preemptive:
            self.plan_by_key()
        elif self.policy.decodes == "after":
            self.plan_prompts_before_decodes()
        elif self.go_on(self.in_turn()):
            self.admit()
        if self.parts:
            self.steps.append((StepWork(*self.work), self.parts))

    def in_turn(self) -> list[Job]:
        jobs = list(self.running)
        if self.policy.decodes == "first":
            jobs.sort(key=lambda job: not self.decodes(job))
        return jobs

    @staticmethod
    def decodes(job: Job) -> bool:
        """Whether one token is left to compute on top of others: what attention kernels call a decode."""
        return job.computed > 0 and job.known - job.computed == 1

    def plan_prompts_before_decodes(self) -> None:
        prefills = [job for job in self.running if not self.decodes(job)]
        if self.go_on(prefills):
            self.admit()
        if not self.work[1]:
            self.go_on([job for job in self.in_turn() if job.planned < self.plans])

    def go_on(self, jobs: list[Job]) -> bool:
        """Plan running requests in order; False if one was preempted for want of pages."""
        nobody_preempted = True
        for job in jobs:
            if not self.budget:
                break
            while job.running and not self.take(job):
                nobody_preempted = False
                self.work[7] += self.preempt(self.last_unplanned(job))
        return nobody_preempted

    def last_unplanned(self, job: Job) -> Job:
        """Who gives way: the last of those that run and are not in this step yet."""
        return next((each for each in reversed(self.running) if each.planned < self.plans), job)

    def admit(self) -> None:
        """Start waiting requests in order until one does not fit."""
        while self.waiting and self.budget and len(self.running) < self.engine.max_sequences:
            job = self.waiting[0][2]
            moved = self.start(job)
            if moved is None:
                return
            heappop(self.waiting)
            self.work[7] += moved
            self.running.append(job)
            if not self.take(job):  # it fits: `start` looked
                self.work[7] += self.preempt(job)
                return

    def plan_by_key(self) -> None:
        """Serve all requests in order of their key; who needs pages takes them from the last."""
        order = sorted((self.key(job), job.id, job) for job in [*self.running, *(w[2] for w in self.waiting)])
        refused = False
        for _, _, job in order:
            if not self.budget or len(self.parts) == self.engine.max_sequences:
                break
            if not job.running and (refused or not self.start_by_key(job, order)):
                refused = True
                continue
            while job.running and not self.take(job):
                self.work[7] += self.preempt(self.behind(job, order) or job)
        self.waiting = [entry for entry in self.waiting if not entry[2].running]
        self.waiting.sort()

    def start_by_key(self, job: Job, order: list[tuple[float, int, Job]]) -> bool:
        while (moved := self.start(job)) is None:
            victim = self.behind(job, order)
            if victim is None:
                return False
            self.work[7] += self.preempt(victim)
        self.work[7] += moved
        self.running.append(job)
        return True

    def behind(self, job: Job, order: list[tuple[float, int, Job]]) -> Job | None:
        """The last in order that runs, is not in this step and comes after the request."""
        for _, _, each in reversed(order):
            if each is job:
                return None
            if each.running and each.planned < self.plans:
                return each
        return None

    def take(self, job: Job) -> bool:
        """Plan a running request's share of the step; False, and nothing planned, if pages are missing."""
        size, budget = self.engine.page_tokens, self.budget
        left = job.known - job.computed
        if left == 0 or (job.promised == job.output):
            return True  # its next token is not known before a planned step has run
        decodes = self.decodes(job)
        drafts = min(self.engine.draft_length, budget - 1) if decodes else 0
        share = 1 + drafts if decodes else min(left, budget)
        if not self.memory.grow(job.holder, self.pages_for(job.computed + share)):
            return False
        self.memory.name(job.holder, min(job.computed + share, job.known) // size)
        self.count(job, share, drafts, decodes=decodes)
        job.computed += share
        job.peak = max(job.peak, min(job.computed, job.known))
        job.planned = self.plans
        emits = job.computed >= job.known
        job.promised += emits
        self.parts.append(Part(job, drafts, emits=emits))
        self.budget -= share
        return True

    def count(self, job: Job, share: int, drafts: int, *, decodes: bool) -> None:
        """Add a share to the work of the step."""
        work = self.work
        work[0] += share
        if decodes:
            work[4] += 1
            work[5] += job.computed
            work[6] += drafts
            work[8] = max(work[8], job.computed)
        else:
            work[1] += share
            work[2] += 1
            work[3] += share * job.computed + share * (share + 1) // 2
        self.run.computed[job.id] += share

    # Outcome of a step

    def finish_step(self) -> None:
        """Let the oldest planned step run and hand out its tokens."""
        work, parts = self.steps.popleft()
        seconds, run = self.seconds(work), self.run
        run.area += self.present * seconds
        run.steps += 1
        run.tokens += work.tokens
        run.drafted += work.drafted
        run.swapped_tokens += work.swapped_tokens
        run.busy += seconds
        self.now += seconds
        run.peak_pages = max(run.peak_pages, self.engine.pages - self.memory.free)
        for part in parts:
            if part.emits:
                self.emit(part)

    def emit(self, part: Part) -> None:
        job, run, count = part.job, self.run, 1
        if part.drafts:
            accepted = accepted_drafts(
                self.engine.seed, job.id, job.emitted, self.accept_below[: part.drafts]
            )
            run.accepted += accepted
            count = min(1 + accepted, job.output - job.emitted)
            refused = 1 + part.drafts - count
            job.computed -= refused
            job.promised += count - 1
            run.lost[job.id] += refused
        if job.emitted:
            gap = self.now - job.last
            run.gaps[gap_bin(gap)] += 1
            run.gaps[0] += count - 1
            run.worst_gap[job.id] = max(run.worst_gap[job.id], gap)
        else:
            run.first[job.id] = self.now
            run.gaps[0] += count - 1
        job.emitted += count
        job.last = self.now
        if job.emitted == job.output:
            self.end(job)

    def end(self, job: Job) -> None:
        self.run.finish[job.id] = self.now
        self.present -= 1
        if job.running:
            self.running.remove(job)
            job.running = False
            self.leave(job)
        else:  # preempted after its last step was planned
            self.waiting = sorted(entry for entry in self.waiting if entry[2] is not job)
            self.run.lost[job.id] -= job.prompt + job.output - 1  # it was not lost: it served to the end
        follower = self.follower.get(job.id)
        if follower is not None:
            think = 0.0 if self.requests.think is None else float(self.requests.think[follower])
            heappush(self.chained, (self.now + think, follower))

    def go(self) -> Run:
        """Run until nobody is left."""
        while True:
            if not self.steps and not self.present:
                time = self.next_arrival()
                if time == float("inf"):
                    break
                self.now = max(self.now, time)
            self.arrive()
            ahead = -1
            while ahead < len(self.steps) <= self.engine.lag:
                ahead = len(self.steps)
                self.plan()
            self.finish_step()
        self.run.end = self.now
        self.run.pages_left = self.memory.free
        return self.run


def simulate(requests: Requests, engine: Engine, cost: Cost) -> Run:
    """Run a workload through an engine until every request has ended.

    Raises:
        WrongUse: A request can never fit, or the engine's settings exclude each other.
    """
    check_fit(requests, engine, cost)
    return Loop(requests, engine, cost).go()
