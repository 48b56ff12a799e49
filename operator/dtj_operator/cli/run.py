"""`dtj run`: one manifest on this machine, from an empty embedded cluster to the job's end. Nothing is left behind."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import msgspec

from dtj_operator.api.fault import parse_fault
from dtj_operator.api.names import ANNOTATION_FAULT
from dtj_operator.api.observed import JobKey
from dtj_operator.api.parse import parse_status
from dtj_operator.api.status import JobStatus
from dtj_operator.cli import create, fleet, manifest, story
from dtj_operator.cli.follow import Follower
from dtj_operator.cli.manifest import Document
from dtj_operator.cli.outcome import BAD_MANIFEST, FAILED, SUCCEEDED, TIMED_OUT, UNHURT, Ended
from dtj_operator.cli.printing import Format, printed
from dtj_operator.cli.references import CLAIM, missing
from dtj_operator.cli.serving import within_signals
from dtj_operator.cli.show import Show
from dtj_operator.local.cluster import Cluster, Options, cluster
from dtj_worker.contract import Task

Json = dict[str, Any]

_CLEANUP_SECONDS = 10.0
"""How long the operator may take to clean up after the job's end; nothing of it outlives the cluster anyway."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    files: Sequence[str]
    fail: str | None = None
    output: Format | None = None
    quiet: bool = False
    timeout: float | None = None
    nodes: int = 1
    gpus: int = 0
    mapped: dict[str, Path] = {}
    python: Path = Path(sys.executable)
    isolate: bool = False
    keep: Path | None = None
    make_claims: bool = False


def run(wish: Wish) -> int:
    """The exit code. Progress goes to the standard output, and to the standard error where that holds the object."""
    documents, job = _checked(wish)
    show = Show(sys.stderr if wish.output else sys.stdout, job.name, logs=not wish.quiet)
    runner = _Run(wish, documents, job, show)
    try:
        return within_signals(runner.run)
    finally:
        if wish.output and runner.last is not None:
            head = {"apiVersion": job.body["apiVersion"], "kind": job.body["kind"]}
            sys.stdout.write(printed({**head, **runner.last}, wish.output))


def _checked(wish: Wish) -> tuple[list[Document], Document]:
    """The manifest's objects, the job among them; Ended with every fault that shows without a cluster."""
    documents = manifest.read(wish.files)
    job = manifest.the_job(documents, wish.files)
    if wish.fail is not None:
        try:
            parse_fault(wish.fail)
        except ValueError as problem:
            raise Ended(BAD_MANIFEST, [f"--fail: {problem}"]) from None
        failing = manifest.with_annotation(job, ANNOTATION_FAULT, wish.fail)
        documents = [failing if document is job else document for document in documents]
        job = failing
    faults = manifest.faults(job)
    if faults:
        raise Ended(BAD_MANIFEST, faults)
    lacking = missing(job, documents)
    made = [one for one in lacking if one.kind == CLAIM and wish.make_claims]
    if faults := [f"{job.place}: {one}" for one in lacking if one not in made]:
        raise Ended(BAD_MANIFEST, faults)
    return [*documents, *(Document(one.made(), "--make-claims", job.folder) for one in made)], job


class _Run:
    """`last` is the job as it was last seen."""

    def __init__(self, wish: Wish, documents: Sequence[Document], job: Document, show: Show) -> None:
        self._wish = wish
        self._documents = documents
        self._job = job
        self._show = show
        self._key = JobKey(job.namespace, job.name)
        self._story: list[str] = []
        self._last_words: dict[str, str] = {}
        self._fault_came = False
        self.last: Json | None = None

    async def run(self) -> int:
        options = Options(
            folder=self._job.folder,
            python=self._wish.python,
            nodes=self._wish.nodes,
            gpus=self._wish.gpus,
            mapped=self._wish.mapped,
            isolate=self._wish.isolate,
            state=self._wish.keep,
        )
        limit, has_begun = asyncio.timeout(self._wish.timeout), False
        try:
            with self._show:
                async with limit, cluster(options, self._show.say) as running:
                    has_begun = True
                    for line in running.lines:
                        self._show.say(line, "dim")
                    return await self._follow(running)
        except TimeoutError:
            if not limit.expired():
                raise
            self._show.say(f"{self._key}: not over after {self._wish.timeout:g} s (--timeout)")
            self._tell_last()
            return TIMED_OUT
        finally:
            # Every way out: they are wanted most where it did not end well. Not where the folder is another run's.
            if has_begun and self._wish.keep is not None:
                self._show.say(f"logs and checkpoints are kept in {self._wish.keep}")

    async def _follow(self, running: Cluster) -> int:
        for warning in create.create(running.api, self._documents):
            self._show.say(f"warning: {warning}", "yellow")
        follower = Follower(running, self._key, self._log)
        before = JobStatus()
        try:
            async with aclosing(follower.jobs()) as seen:
                async for body in seen:
                    if body is None:
                        raise Ended(FAILED, [f"{self._key} was deleted"])
                    before = self._tell(before, body, follower)
                    if story.is_final(before):
                        break
            await follower.finish()
            await self._cleaned_up(follower)
        finally:
            await follower.close()
        return self._conclude(before)

    def _tell(self, before: JobStatus, body: Json, follower: Follower) -> JobStatus:
        """Show what has changed with this state of the job; its status."""
        self.last = body
        after = parse_status(body)
        # Looked for in every state: a later failure takes the place of the one that was asked for.
        self._fault_came = self._fault_came or (self._wish.fail is not None and story.is_of(self._wish.fail, after))
        for line in story.milestones(before, after):
            self._story.append(line)
            self._show.say(line, "bold yellow")
        self._show.status(after, follower.pods())
        if refusal := story.refusal(after):
            raise Ended(BAD_MANIFEST, [f"{self._job.place}: {refusal}"])
        if words := fleet.never_fits(after):
            # A real cluster may get such a node some day; here the nodes are those of the command line.
            pods = sum(role.desired for role in after.roles.values())
            told = fleet.remedy(words, pods=pods, nodes=self._wish.nodes)
            raise Ended(BAD_MANIFEST, [f"{self._job.place}: {words}; {told}"])
        return after

    async def _cleaned_up(self, follower: Follower) -> None:
        """So that the object that is printed is the last one there will be."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLEANUP_SECONDS), aclosing(follower.jobs()) as seen:
                async for body in seen:
                    self.last = body or self.last
                    if body is None or parse_status(body).cleanup is None:
                        return

    def _conclude(self, status: JobStatus) -> int:
        self._show.say("")
        for line in self._story:
            self._show.say(line)
        chief = "chief-0" if "chief" in status.roles else str(Task("worker", 0))
        if chief in self._last_words:
            self._show.say(f"{chief}: {self._last_words[chief]}")
        is_good = status.phase == "Succeeded"
        self._show.say(story.conclusion(status, self._show.seconds), "bold green" if is_good else "bold red")
        if self._wish.fail is not None and not self._fault_came:
            self._show.say(story.never_came(self._wish.fail, status), "bold red")
            return UNHURT if is_good else FAILED
        return SUCCEEDED if is_good else FAILED

    def _tell_last(self) -> None:
        if self.last is not None:
            status = parse_status(self.last)
            self._show.say(f"it is {story.where(status)}" + (f": {status.reason}" if status.reason else ""))

    def _log(self, task: str, line: str) -> None:
        if story.is_spoken(line):
            self._last_words[task] = story.last_words(line)
        self._show.log(task, line)
