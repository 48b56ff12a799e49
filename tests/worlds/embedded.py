"""EmbeddedWorld: the embedded cluster with its real processes, supervisors of `counter.py` and the operator's own."""

import os
import re
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dtj_operator.api.observed import JobKey, PodView
from dtj_operator.local.cluster import Cluster, Options, cluster
from dtj_operator.local.logs import LogQuery
from dtj_worker.contract import Task
from tests.local.embedded import can_isolate
from tests.worlds.inprocess import InProcess
from tests.worlds.monitor import Monitor
from tests.worlds.world import (
    CLAIM,
    NAMESPACE,
    Ability,
    AskToStop,
    ExhaustMemory,
    HurtPod,
    KillOperator,
    KillSupervisor,
    KillTrainer,
    LoseNode,
    UpgradeOperator,
)

ROOT = Path(__file__).resolve().parents[2]
COUNTER, DIGITS = ROOT / "tests" / "programs", ROOT / "examples" / "digits"
TRAINER = "trainer"
LEVEL_OF_ERRORS = re.compile(r" \d\d:\d\d:\d\d (error|critical) ")
"""Of a line of the operator's log: an exception that nobody foresaw."""


class EmbeddedWorld(InProcess):
    """Use `embedded_world()`."""

    name = "embedded"

    def __init__(self, running: Cluster) -> None:
        super().__init__(running.api)
        self.cluster = running
        self.monitor = Monitor(running.api.state.store, self.alive)
        self.stored.create("namespaces", {"metadata": {"name": NAMESPACE}})
        self.stored.create("persistentvolumeclaims", CLAIM)

    def can(self, ability: Ability) -> bool:
        return ability in ABILITIES

    async def log(self, job: JobKey, task: Task) -> str:
        query = LogQuery(namespace=job.namespace, pod=self.wanted(job, task).name, container=TRAINER)
        return b"".join([chunk async for chunk in self.cluster.kubelet.logs(query)]).decode()

    def check(self) -> None:
        self.monitor.check()

    async def hurt_operator(self, what: KillOperator | UpgradeOperator) -> None:
        operator = self.cluster.operator
        assert operator is not None
        if operator.pid is not None:
            os.kill(operator.pid, signal.SIGKILL if isinstance(what, KillOperator) else signal.SIGTERM)

    async def hurt_pod(self, pod: PodView, what: HurtPod) -> None:
        match what:
            case KillTrainer():
                os.kill(self._processes(pod)[1], signal.SIGKILL)
            case KillSupervisor():
                os.kill(self._processes(pod)[0], signal.SIGKILL)
            case AskToStop():
                os.kill(self._processes(pod)[0], signal.SIGTERM)
            case LoseNode():
                assert pod.node is not None, f"{pod.name} is on no node"
                self.cluster.kubelet.lose(pod.node)
            case ExhaustMemory():
                raise NotImplementedError("no memory is limited here")
            case _:
                raise NotImplementedError(what)

    def _processes(self, pod: PodView) -> list[int]:
        """The supervisor, then its child."""
        found = self.cluster.kubelet.processes(NAMESPACE, pod.name, TRAINER)
        assert len(found) > 1, f"{pod.name} runs {len(found)} processes, and not a supervisor with its child"
        return found


ABILITIES: frozenset[Ability] = frozenset({"Gpus", "Programs", "Processes"})


@asynccontextmanager
async def embedded_world(
    say: Callable[[str], None] = lambda told: None, **options: Any
) -> AsyncIterator[EmbeddedWorld]:
    """A world in true time, its network its own where that is allowed. No process of it is left at the end."""
    asked = Options(**{"folder": COUNTER, "nodes": 3, "gpus": 4, "isolate": can_isolate(), **options})
    async with cluster(asked, say) as running:
        world = EmbeddedWorld(running)
        yield world
        world.monitor.check_left_behind()
        told = (running.state / "operator.log").read_text().splitlines()
        errors = [line for line in told if LEVEL_OF_ERRORS.search(line)]
        assert not errors, "\n".join(errors)
