"""The wait before the start: says now and then what is missing, and at its deadline whose fault it is."""

from dtj_worker.contract import Death, TaskSpec
from dtj_worker.supervisor import culprits, reach
from dtj_worker.supervisor.link import Link
from dtj_worker.supervisor.log import say
from dtj_worker.supervisor.loop import Loop
from dtj_worker.supervisor.peers import Gang
from dtj_worker.supervisor.verdict import Ending

SAY_SECONDS = 10.0
"""So long a wait is nothing to speak of; afterwards each change is said, but no more often than this."""

PROBE_BEFORE_SECONDS = 7.0
"""Peers are probed so long before a deadline: at the deadline itself they would be ending for the same reason."""


class Waiting:
    """One task's wait. `gang` on the chief, `link` on its peers, neither on a task that needs no other."""

    def __init__(self, loop: Loop, spec: TaskSpec, gang: Gang | None, link: Link | None) -> None:
        self._loop, self._spec, self._gang, self._link = loop, spec, gang, link
        self._probe = reach.Probe(loop)
        self._until = loop.now + spec.limits.registration_seconds
        self._say_at = loop.now + SAY_SECONDS
        self._said = ""

    def look(self, checking: str) -> Ending | None:
        """The end of the wait, if its time is over. `checking`: what this task itself is still at; empty when ready."""
        gang, link, now = self._gang, self._link, self._loop.now
        missing = [task for task in gang.missing if task != self._spec.task] if gang else []
        if now >= self._say_at and self._words(checking, missing) != self._said:
            self._said, self._say_at = self._words(checking, missing), now + SAY_SECONDS
            say(self._spec.task, self._said)
        if missing and self._until - now < PROBE_BEFORE_SECONDS:
            self._probe.ask({task: self._spec.peers[task] for task in missing})
        # The chief's own deadline comes first: it knows who is missing.
        if now < self._until + (PROBE_BEFORE_SECONDS if link and link.is_registered else 0):
            return None
        if checking:
            seconds = self._spec.limits.registration_seconds
            return Ending("Rendezvous", f"the check of {checking} has not come back within {seconds:g} s")
        if gang:
            why = culprits.not_registered(self._spec, missing, self._probe.found or {})
            gang.record(Death(missing[0], "Rendezvous", message=why))
            return Ending("Rendezvous", why)
        return Ending("Rendezvous", culprits.chief_not_reached(self._spec, link.problem if link else ""))

    def _words(self, checking: str, missing: list[str]) -> str:
        if checking:
            return f"the check of {checking} is under way"
        if self._gang:
            total = len(self._spec.peers)
            return f"{total - len(missing)} of {total} tasks have registered; waiting for {culprits.listed(missing)}"
        problem = self._link.problem if self._link else ""
        return f"waiting for {self._spec.chief}: {problem or 'it waits for other tasks'}"
