"""One attempt's program: started, kept to its deadlines, ended, judged. Peers and orders are `supervisor.py`'s."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dtj_worker.contract import TaskSpec, Verdict
from dtj_worker.supervisor import culprits, environment, machine, preflight, reach, verdict
from dtj_worker.supervisor.child import Child
from dtj_worker.supervisor.log import say
from dtj_worker.supervisor.loop import Loop
from dtj_worker.supervisor.preflight import Prepared
from dtj_worker.supervisor.program import Program
from dtj_worker.supervisor.progress import Progress
from dtj_worker.supervisor.tfconfig import Cluster
from dtj_worker.supervisor.verdict import Ending, Evidence
from dtj_worker.supervisor.waiting import PROBE_BEFORE_SECONDS

PEER_GRACE_SECONDS = 2.0
"""After a peer's death there is nothing to save: the program mostly hangs in a collective."""

REPORTING_GRACE_SECONDS = 5.0
"""A program that reports leaves saving to dtj. Any other may save on SIGTERM: it has the pod's grace, less a margin."""

PORT_TRY_SECONDS = 1.0


@dataclass(frozen=True)
class Job:
    """What a supervisor works on. Not `is_told`: no operator stands behind it, so it works alone."""

    spec: TaskSpec
    is_told: bool
    cluster: Cluster | None
    program: Program
    environ: Mapping[str, str]


class Attempt:
    """From the child's start to its Verdict, which is there once all its descendants have gone."""

    def __init__(self, loop: Loop, job: Job, prepared: Prepared, progress: Progress) -> None:
        """Start the child; OSError if the system refuses to."""
        self.ending: Ending | None = None
        """Why the child is being ended; None while it runs and where it ended by itself."""
        self.verdict: Verdict | None = None
        self.ended_at = math.inf
        self._loop = loop
        self._spec = job.spec
        self._is_told = job.is_told
        self._is_python = job.program.is_python
        self._port = preflight.tensorflow_port(job.spec)
        self._port_at = loop.now
        self._probe = reach.Probe(loop)
        self._has_warned = False
        self.progress = progress
        progress.started(loop.now)
        self._oom_kills = machine.oom_kills()
        environ = environment.of_child(job.spec, job.cluster, job.program, prepared, job.environ)
        self._child = Child(loop, job.program.command, environ, lambda report: progress.hear(report, loop.now))

    def look(self) -> None:
        """Reap, keep deadlines, judge."""
        self.progress.look(self._loop.now)
        self._child.look()
        if self._child.exit is None:
            if self.ending is None:
                self._keep_deadlines()
        elif self._child.is_gone and self.verdict is None:
            self.ended_at = self._loop.now
            self.verdict = verdict.judge(self._spec.task, self._spec.attempt, self._evidence(), self.ending)
            self.progress.stage = "Done" if self.verdict.kind == "Done" else "Dead"

    def end(self, ending: Ending) -> None:
        """End the child, unless it is ending or has ended already. A second request to stop doesn't wait any longer."""
        if self._child.exit is not None:
            return
        if self.ending:
            if ending.kind == self.ending.kind == "Stopped":
                self._child.kill()
            return
        self.ending = ending
        if ending.with_stacks:
            self._child.stop_with_stacks()
        elif ending.kind != "Stopped":
            self._child.stop(PEER_GRACE_SECONDS)
        elif self.progress.reports:
            self._child.stop(min(REPORTING_GRACE_SECONDS, self._spec.limits.grace_seconds / 2))
        else:
            grace = self._spec.limits.grace_seconds
            self._child.stop(max(grace - REPORTING_GRACE_SECONDS, grace / 2))

    def kill(self) -> None:
        """When the supervisor itself is at its end."""
        self._child.kill()

    def _keep_deadlines(self) -> None:
        p, now = self.progress, self._loop.now
        if self._port and p.stage == "Program" and now - self._port_at >= PORT_TRY_SECONDS:
            self._port_at = now
            if reach.listens(self._port):
                p.heard_port(now)
        if p.stage == "Rendezvous" and p.seconds_left(now) < PROBE_BEFORE_SECONDS:
            self._probe.ask(culprits.tensorflow_addresses(self._spec))
        if p.is_slow_to_step(now) and not self._has_warned:
            self._has_warned = True
            stacks = "; its stacks follow" if self._child.dump_stacks() else ""
            limit = self._spec.limits.first_step_seconds
            say(self._spec.task, f"no first step for {limit / 2:g} s, of {limit:g} s that it may take{stacks}")
        lingering = p.lingering(now) if self._is_told else None
        if lingering and Path(f"/proc/{lingering}").exists():
            why = f"it has not ended within {self._spec.limits.grace_seconds:g} s of that: a thread or process holds it"
            self.end(Ending("Program", f"{p.problem}; {why}", with_stacks=True))
        elif found := p.overdue(now):
            kind, what = found
            message = culprits.not_listening(self._spec, what, self._probe.found) if kind == "Rendezvous" else what
            self.end(Ending(kind, message, with_stacks=True))

    def _evidence(self) -> Evidence:
        p, found = self.progress, self._child.exit
        assert found is not None
        return Evidence(
            exit=found,
            problem=p.problem,
            refused=p.refused,
            errors=self._child.errors,
            out_of_memory=machine.oom_kills() > self._oom_kills,
            has_peers=p.has_peers,
            step=p.step,
            is_loading=self._is_python and p.stage == "Program" and p.step is None,
        )
