"""The supervisor of one task: waits for its peers, starts the attempt, does what the chief's orders say, says the end.

Level-triggered: what happens changes a value, and `_look` then sees what there is to do. What to check, how to speak,
and how to judge an end is in the modules that it brings together.
"""

import errno
import math
import signal
from dataclasses import replace

from dtj_worker.contract import ENV_TOKEN, ConfigFault, Death, Verdict
from dtj_worker.reports import Restore
from dtj_worker.supervisor import choice, figures, preflight, reach, verdict
from dtj_worker.supervisor.attempt import Attempt, Job
from dtj_worker.supervisor.child import adopt_orphans
from dtj_worker.supervisor.link import Link
from dtj_worker.supervisor.log import say
from dtj_worker.supervisor.loop import Loop
from dtj_worker.supervisor.peers import Gang, Order, Word
from dtj_worker.supervisor.preflight import PortTaken, Prepared
from dtj_worker.supervisor.progress import Progress
from dtj_worker.supervisor.server import Answers, Server
from dtj_worker.supervisor.verdict import Ending
from dtj_worker.supervisor.waiting import Waiting

REQUESTS = (signal.SIGTERM, signal.SIGINT)
"""How a supervisor is asked to stop. `main` blocks them until somebody listens."""

SETTLE_SECONDS = 2.0
"""An end that may come of another's death waits so long for the word of who died first."""

FAREWELL_SECONDS = 2.0
"""How long the last words may take to be heard."""

NOTE_SECONDS = 20.0
"""How long a disk may take to note that the run is finished."""


class Supervisor:
    def __init__(self, job: Job) -> None:
        spec = self._spec = job.spec
        self._job = job
        self._loop = Loop()
        self._began_at = self._loop.now
        self._token = job.environ.get(ENV_TOKEN, "")
        is_member = job.is_told and spec.task in spec.peers  # The evaluator is none: it needs no one to start.
        is_chief = is_member and spec.task == spec.chief
        self._gang = Gang(self._loop, spec, self._peer_died, self._peer_lost) if is_chief else None
        is_peer = is_member and not is_chief
        self._link = Link(self._loop, spec, self._token, self._obey, self._chief_lost) if is_peer else None
        self._server: Server | None = None
        self._waiting = Waiting(self._loop, spec, self._gang, self._link)
        self._progress = Progress(spec.limits, has_peers=preflight.meets_peers(spec))
        self._prepared: Prepared | None = None
        self._attempt: Attempt | None = None
        self._first_death: Death | None = None
        """As far as this task knows."""
        self._chief_is_done = self._has_told = self._is_noting = False
        self._verdict: Verdict | None = None
        self._verdict_at = math.inf

    def run(self) -> Verdict:
        """Until the program has ended, and whom that concerns has heard of it."""
        for number in REQUESTS:
            self._loop.on_signal(number, self._asked_to_stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, REQUESTS)  # What came while we started comes now.
        self._loop.on_signal(signal.SIGCHLD, lambda: None)  # Wakes the loop; the attempt reaps.
        if line := adopt_orphans():
            say(self._spec.task, line)
        spec, digest = self._spec, self._job.program.digest
        self._loop.in_thread(lambda: preflight.prepare(spec, digest), self._prepared_with)
        try:
            while self._verdict is None or not self._is_heard():
                self._loop.wait()
                self._look()
        finally:
            if self._attempt and not self._attempt.verdict:
                self._attempt.kill()
            self._loop.close()
        return self._verdict

    def _look(self) -> None:
        if self._verdict:
            return
        if self._job.is_told and self._server is None:
            self._listen()
        if self._attempt:
            self._attempt.look()
            self._conclude_if_ended(self._attempt)
        else:
            self._wait()
        if self._verdict is None:
            self._talk()

    def _talk(self) -> None:
        p = self._progress
        if self._gang:
            if self._prepared:
                own = self._gang.members[self._spec.task]
                own.stage, own.busy = p.stage, p.busy
            self._gang.look()  # Also while a checkpoint is being verified: peers wait, and may hear that we live.
            p.held_by = self._gang.busy
        if self._link and self._prepared and not self._chief_is_done:
            self._link.look(Word(p.stage, p.busy))
        if self._server:
            self._server.look()

    def _listen(self) -> None:
        try:
            listening = reach.listener(self._spec.status)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                self._end(Ending("Config", f"can't listen on the status port {self._spec.status}: {error.strerror}"))
            elif self._loop.now - self._began_at > preflight.PORT_SECONDS:
                self._end(Ending("Rendezvous", f"status port {self._spec.status} is in use by another process"))
            return
        gang = self._gang
        answers = Answers(
            metrics=lambda: figures.metrics(self._spec, self._progress, self._loop.now),
            training=(lambda: figures.training(self._spec, self._progress, gang, self._loop.now)) if gang else None,
            join=gang.join if gang else None,
        )
        self._server = Server(self._loop, listening, self._token, answers)

    def _prepared_with(self, result: Prepared | Exception) -> None:
        match result:
            case Prepared():
                self._prepared = result
                if self._gang:
                    self._gang.members[self._spec.task].stage = "Registered"
                for line in result.notes:
                    say(self._spec.task, line)
            case ConfigFault():
                self._end(Ending("Config", str(result)))
            case PortTaken():
                self._end(Ending("Rendezvous", str(result)))
            case _:
                self._end(Ending("Program", f"{self._checked}: {result}"))

    @property
    def _checked(self) -> str:
        return self._spec.checkpoint.directory if self._spec.checkpoint else "TensorFlow's port"

    def _wait(self) -> None:
        """Before the start: for the checks, for the peers, for the chief's order."""
        spec, gang, link = self._spec, self._gang, self._link
        if self._prepared and gang and not gang.missing:
            restore = self._prepared.restore
            # Own child first: a peer that is lost while it is told to start then counts as a death of this attempt.
            self._start(restore)
            if self._attempt:
                # Only the chief's child reads the path; the others get the values from it.
                gang.order(Order("Start", spec.attempt, replace(restore, path=None) if restore else None))
        elif self._prepared and not gang and not link:
            self._start(self._prepared.restore)
        elif link and link.refused:
            self._end(Ending("Config", f"{spec.chief} ({spec.chief_status}): {link.problem}"))
        elif ending := self._waiting.look("" if self._prepared else self._checked):
            self._end(ending)

    def _start(self, restore: Restore | None) -> None:
        prepared = replace(self._prepared or Prepared(), restore=restore)
        try:
            self._attempt = Attempt(self._loop, self._job, prepared, self._progress)
        except OSError as error:
            command = self._job.program.command[0]
            self._end(Ending("Config", f"program {command} can't be started: {error.strerror}"))

    def _asked_to_stop(self) -> None:
        saved = self._progress.checkpoint  # Only the chief's program tells of its saves.
        self._end(Ending("Stopped", f"asked to stop; {f'last saved at step {saved[0]}' if saved else 'unsaved'}"))

    def _peer_died(self, death: Death) -> None:
        """The chief's: a peer says that its child has ended badly."""
        if self._gang is None or not self._gang.ends_with(death.task):
            say(self._spec.task, f"{death.task} has died: {death.message}; the others train on")
            return
        first = self._first_death = self._gang.record(death)
        self._gang.order(Order("Stop", self._spec.attempt, death=first))
        self._end(Ending("Peer", verdict.because(first), blames=first.task, with_stacks=first.kind == "Stall"))

    def _peer_lost(self, task: str, why: str) -> None:
        """The chief's: a peer's connection has ended without a word."""
        if self._verdict:
            return
        if self._attempt:
            self._peer_died(Death(task, "Program", message=f"its supervisor is gone: {why}"))
        else:
            say(self._spec.task, f"{task} is gone again: {why}")

    def _obey(self, order: Order) -> None:
        """A peer's: what the chief's supervisor orders."""
        if order.kind == "Start" and self._attempt is None and self._verdict is None:
            self._start(order.restore)
        elif order.kind == "Stop" and order.death:
            first = self._first_death = order.death
            self._end(Ending("Peer", verdict.because(first), blames=first.task, with_stacks=first.kind == "Stall"))
        elif order.kind == "Finish":
            self._chief_is_done = True
            if self._spec.strategy == "ParameterServer":
                # Its workers and ps serve for ever: TensorFlow has no word for the end.
                self._end(Ending("Done", f"{self._spec.chief} is done"))
        self._progress.held_by = order.busy

    def _chief_lost(self, why: str) -> None:
        """A peer's: the connection to the chief has ended."""
        if self._attempt and not self._chief_is_done and not self._first_death:
            chief = self._spec.chief
            self._first_death = Death(chief, "Program", message=f"its supervisor is gone: {why}")
            self._end(Ending("Peer", verdict.because(self._first_death), blames=chief))

    def _end(self, ending: Ending) -> None:
        """End the attempt for this reason; where none was started, this is the verdict."""
        if self._attempt:
            self._attempt.end(ending)
        elif self._verdict is None:
            self._conclude(verdict.without_child(self._spec.task, self._spec.attempt, ending))

    def _conclude_if_ended(self, attempt: Attempt) -> None:
        found = attempt.verdict
        if found is None:
            return
        if self._link and found.kind != "Done" and not self._has_told:
            self._has_told = True
            self._link.tell(Word("Dead", death=verdict.death(found)))
        if self._may_be_a_consequence(found) and self._loop.now - attempt.ended_at < SETTLE_SECONDS:
            return
        self._conclude(verdict.after(found, self._first_death) if self._first_death else found)

    def _may_be_a_consequence(self, found: Verdict) -> bool:
        """Whether another task may have died before, by the chief's clock, and the word of it be on its way."""
        is_known = self._first_death is not None or self._chief_is_done or found.by == "supervisor"
        if is_known or not self._progress.has_peers:
            return False
        return found.kind == "Peer" or (found.kind == "Program" and self._link is not None and self._link.is_registered)

    def _conclude(self, found: Verdict) -> None:
        """This is how it ended: tell whom it concerns."""
        step, epoch = self._progress.checkpoint or (None, None)
        found = replace(found, checkpoint_step=step, checkpoint_epoch=epoch)
        self._verdict, self._verdict_at = found, self._loop.now
        if self._gang and found.kind == "Done":
            self._note_the_end()
            self._gang.members[found.task].stage = "Done"
            self._gang.order(Order("Finish", self._spec.attempt))
        elif self._gang:
            first = self._gang.record(verdict.death(found))
            self._gang.order(Order("Stop", self._spec.attempt, death=first))
        if self._link and not self._has_told:
            death = verdict.death(found) if found.kind != "Done" else None
            self._link.tell(Word("Dead" if death else "Done", death=death))
        for part in (self._gang, self._link):
            if part:
                part.finish()
        if self._server:
            self._server.close()

    def _note_the_end(self) -> None:
        if plan := self._spec.checkpoint:
            self._is_noting = True
            self._loop.in_thread(lambda: choice.finish(plan, self._spec.uid), self._noted)

    def _noted(self, result: Exception | None) -> None:
        self._is_noting = False
        if result:
            say(self._spec.task, f"that this run is finished can't be noted in {self._checked}: {result}")

    def _is_heard(self) -> bool:
        """Whether nobody listens any more, or has had the time."""
        seconds = self._loop.now - self._verdict_at
        if self._is_noting and seconds <= NOTE_SECONDS:
            return False
        gone = [
            self._gang is None or self._gang.is_alone,
            self._link is None or not self._link.is_open,
            self._server is None or self._server.is_quiet,
        ]
        return all(gone) or seconds > FAREWELL_SECONDS
