"""Whom a missed deadline blames, in people's words: who is missing or doesn't listen, where, and how it fails."""

from collections.abc import Mapping, Sequence

from dtj_worker.contract import TaskSpec
from dtj_worker.supervisor import reach, tfconfig

NAMED = 5
"""So many culprits are named; the rest is counted."""


def tensorflow_addresses(spec: TaskSpec) -> dict[str, str]:
    """Where the peers of a task listen in this attempt."""
    shift = tfconfig.port_shift(spec)
    return {task: reach.shifted(address, shift) for task, address in spec.peers.items() if task != spec.task}


def not_registered(spec: TaskSpec, missing: Sequence[str], how: Mapping[str, str]) -> str:
    """The chief's view: `how` says of the missing tasks' TensorFlow addresses why they took no connection."""
    there = len(spec.peers) - len(missing)
    head = f"{there} of {len(spec.peers)} tasks registered within {spec.limits.registration_seconds:g} s"
    return f"{head}; missing: {listed([_missing(spec, task, how.get(task)) for task in missing])}"


def chief_not_reached(spec: TaskSpec, problem: str) -> str:
    """A peer's view; without a problem it is registered, and others are missing."""
    limit = f"{spec.limits.registration_seconds:g} s"
    if not problem:
        return f"{spec.chief} did not start the attempt within {limit}: it waits for other tasks"
    return f"could not register with {spec.chief} ({spec.chief_status}) within {limit}: {problem}"


def not_listening(spec: TaskSpec, what: str, how: Mapping[str, str] | None) -> str:
    """`what` has not come about; `how`: why peers' TensorFlow ports took no connection; None if that isn't known."""
    addresses = tensorflow_addresses(spec)
    if how is None or not addresses:
        return what
    if not how:
        return f"{what}, though all {len(addresses)} peers listen on their TensorFlow ports"
    hint = "; is its program listening on another port, or has it not come to its strategy?"
    silent = listed([f"{task} ({addresses[task]}): {why}" for task, why in how.items()])
    head = f"{what}; {len(addresses) - len(how)} of {len(addresses)} peers listen; {silent}"
    return head + (hint if any("refused" in why for why in how.values()) else "")


def listed(parts: Sequence[str]) -> str:
    """As words; beyond the first few, their number."""
    return ", ".join(parts[:NAMED]) + (f" and {len(parts) - NAMED} more" if len(parts) > NAMED else "")


def _missing(spec: TaskSpec, task: str, how: str | None) -> str:
    host = spec.peers[task].rpartition(":")[0]
    if how is None:
        return f"{task} ({host})"
    if "refused" in how:
        # Nothing listens on the TensorFlow port before the start, so a refusal only says that the pod runs.
        return f"{task} ({host}: its pod answers, but no supervisor registered; is dtj-worker its entry point?)"
    return f"{task} ({host}: {how})"
