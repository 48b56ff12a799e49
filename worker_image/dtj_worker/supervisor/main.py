"""`dtj-worker`: what is read and checked before anything runs, and the Verdict that is left behind at the end."""

import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from dtj_worker.codec import ContractError, decode
from dtj_worker.contract import (
    ENV_TASK,
    ENV_TERMINATION_LOG,
    ENV_TOKEN,
    INSTALL_OPTION,
    ConfigFault,
    Limits,
    Task,
    TaskSpec,
    Verdict,
)
from dtj_worker.supervisor import environment, program, reach, tfconfig, verdict
from dtj_worker.supervisor.attempt import Job
from dtj_worker.supervisor.log import say
from dtj_worker.supervisor.supervisor import REQUESTS, Supervisor
from dtj_worker.supervisor.tfconfig import Cluster
from dtj_worker.supervisor.verdict import Ending

TERMINATION_LOG = "/dev/termination-log"

ALONE_SECONDS = 7 * 86400.0
"""Every deadline where no operator says one: pods of a foreign operator may start hours apart."""


def main() -> NoReturn:
    """Run the program that the command line names, as a task of a job or by itself; exit as its Verdict says."""
    # Until the supervisor listens, a request to stop would be lost (process 1) or end this without a Verdict.
    signal.pthread_sigmask(signal.SIG_BLOCK, REQUESTS)
    words = sys.argv[1:]
    if words[:1] in (["-h"], ["--help"]):
        print(f"usage: {program.USAGE}")
        sys.exit(0)
    if words[:1] == [INSTALL_OPTION] and len(words) == 2:
        from dtj_worker.supervisor.install import install  # noqa: PLC0415 - what a supervisor needs once must not stay

        try:
            install(Path(words[1]))
        except OSError as error:
            sys.exit(f"dtj-worker: {words[1]} can't be written: {error.strerror}")
        sys.exit(0)
    found = run(words, os.environ)
    say(found.task, found.message or found.kind)
    _leave(found, os.environ)
    sys.exit(verdict.exit_code(found))


def run(words: Sequence[str], environ: Mapping[str, str]) -> Verdict:
    """From the command line to the Verdict; never raises."""
    task, attempt = "worker-0", 0
    try:
        told = _told(environ)
        if told:
            task, attempt = told.task, told.attempt
        cluster = tfconfig.read(environ.get("TF_CONFIG"))
        if told:
            tfconfig.compare(cluster, told)
        spec = told or _alone(cluster)
        task = spec.task
        for line in [*([] if told else [_what_is_missing(cluster)]), *environment.notices(spec)]:
            say(task, line)
        return Supervisor(Job(spec, told is not None, cluster, program.resolve(words, environ), environ)).run()
    except ConfigFault as fault:
        return verdict.without_child(task, attempt, Ending("Config", str(fault)))
    except Exception as error:
        traceback.print_exc()
        return verdict.without_child(task, attempt, Ending("Program", f"the supervisor itself failed: {error!r}"))


def _told(environ: Mapping[str, str]) -> TaskSpec | None:
    """What the operator says about this task; None without one. ConfigFault if it makes no sense."""
    text = environ.get(ENV_TASK)
    if not text:
        return None
    try:
        spec = decode(TaskSpec, text)
        for name in (spec.task, spec.chief, *spec.peers):
            Task.parse(name)
        for address in (spec.status, spec.chief_status, *spec.peers.values()):
            reach.split(address)
    except (ContractError, ValueError) as error:
        raise ConfigFault(f"{ENV_TASK}: {error}") from None
    if spec.chief not in spec.peers:
        raise ConfigFault(f"{ENV_TASK}: the chief {spec.chief} is none of the peers")
    if not environ.get(ENV_TOKEN):
        raise ConfigFault(f"{ENV_TASK} is set, but {ENV_TOKEN} is not: supervisors would not know each other")
    return spec


def _alone(cluster: Cluster | None) -> TaskSpec:
    """What can be said without an operator: as much as TF_CONFIG says."""
    peers = cluster.peers() if cluster else {}
    limits = Limits(*[ALONE_SECONDS] * 6)
    return TaskSpec(
        namespace="",
        job="",
        uid="",
        task=str(cluster.task) if cluster else "worker-0",
        attempt=0,
        strategy=tfconfig.implied(cluster),
        chief=next((task for task in ("chief-0", "worker-0") if task in peers), "worker-0"),
        chief_status="",
        status="",
        peers=peers,
        limits=limits,
    )


def _what_is_missing(cluster: Cluster | None) -> str:
    who = f"as {cluster.task} of the {len(cluster.peers())} tasks in TF_CONFIG" if cluster else "as a single process"
    return f"{ENV_TASK} is not set, so this runs {who}: no status port, no deadlines, no choice of a checkpoint"


def _leave(found: Verdict, environ: Mapping[str, str]) -> None:
    """Write the termination message where Kubernetes, or who plays it, will look for it."""
    named = environ.get(ENV_TERMINATION_LOG)
    path = Path(named or TERMINATION_LOG)
    if not named and not path.exists():
        return  # No container: nobody looks there.
    try:
        path.write_text(found.termination_message(), encoding="utf-8")
    except OSError as error:
        say(found.task, f"the verdict can't be written to {path}: {error.strerror}")


if __name__ == "__main__":
    main()
