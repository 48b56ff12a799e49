"""A job's children beside its pods: which are there, which have to be made, anew too. How they look is `desired`'s."""

from typing import Any

from dtj_operator.api import names
from dtj_operator.api.observed import Situation
from dtj_operator.api.status import JobStatus, Time
from dtj_operator.decide.actions import Action, Create, Delete
from dtj_operator.decide.conditions import says, with_condition
from dtj_operator.decide.members import Members
from dtj_operator.desired.objects import children, signed
from dtj_operator.desired.overlay import mapping, role_template
from dtj_operator.desired.topology import spec_of
from dtj_operator.gang.choose import choose

STAYS = ("Secret", "PersistentVolumeClaim")
"""Children that neither an edit nor the end of the job takes: garbage collection does, or their user."""


def renewed(s: Situation, m: Members) -> tuple[Action, ...]:
    """Between attempts: what the manifest does not want, or not as it was made, goes; what is not there comes."""
    wanted = {(child["kind"], child["metadata"]["name"]): child for child in _wanted(s, m)}
    stale = [child for child in sorted(s.children) if child[0] not in STAYS and not _is_as_wanted(child, wanted)]
    there = {child[:2] for child in s.children.difference(stale)}
    deletes = [Delete(kind, name, uid) for kind, name, uid, _ in stale]
    return (*deletes, *(Create(child) for name, child in wanted.items() if name not in there))


def lost(s: Situation, m: Members) -> tuple[Create, ...]:
    """During an attempt: what its pods need and someone deleted. What was edited waits for the next attempt."""
    needed = {("Service", names.peers_service(s.key.name))}
    if not says(s.status, "Isolated", "PolicyOff"):
        needed.add(("NetworkPolicy", names.network_policy(s.key.name)))
    needed -= {child[:2] for child in s.children} | {(child.kind, child.name) for child in s.foreign_names}
    if not needed:
        return ()
    return tuple(Create(made) for made in _wanted(s, m) if (made["kind"], made["metadata"]["name"]) in needed)


def isolated(s: Situation, m: Members, status: JobStatus, now: Time) -> JobStatus:
    """Who may reach the pods, as far as the manifest says."""
    spec = spec_of(s)
    if spec.network.policy == "None":
        words = "network.policy is None: anyone in the cluster may reach TensorFlow's unauthenticated ports"
        return with_condition(status, "Isolated", "False", "PolicyOff", words, now=now)
    pods = [mapping(role_template(spec, task.role).get("spec")) for task in m.topology.tasks if task.index == 0]
    if any(pod.get("hostNetwork") is True for pod in pods):
        words = "pods on the host's network are outside every NetworkPolicy"
        return with_condition(status, "Isolated", "False", "HostNetwork", words, now=now)
    return with_condition(status, "Isolated", "True", "PolicyApplied", "", now=now)


def _wanted(s: Situation, m: Members) -> list[dict[str, Any]]:
    """The manifests of all children but pods, the gang's group last."""
    group = choose(spec_of(s), s.facts)[0].group(s, m.topology)
    made = [*children(s, m.topology), *([group] if group else [])]
    return [child if child["kind"] in STAYS else signed(child) for child in made]


def _is_as_wanted(child: tuple[str, str, str, str], wanted: dict[tuple[str, str], dict[str, Any]]) -> bool:
    kind, name, _, digest = child
    made = wanted.get((kind, name))
    return made is not None and bool(made["metadata"]["annotations"][names.ANNOTATION_MADE_OF] == digest)
