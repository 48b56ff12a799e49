"""All faults of a manifest, each one line with its field path: what is wrong, and what to do.

`faults` finds what neither the CRD's schema nor its rules see; the operator asks it. `all_faults` adds those two, for
people who want to know before a cluster does. Both are total: whatever a file holds, they answer.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dtj_operator.api import names
from dtj_operator.api.fault import parse_fault
from dtj_operator.api.frozen import frozen_faults
from dtj_operator.api.parse import parse_status, salvage
from dtj_operator.api.policies import Network
from dtj_operator.api.spec import Checkpoint, JobSpec
from dtj_operator.api.templates import Settings, template_faults
from dtj_worker.contract import ROLES, Task

TF_CONFIG_BYTES = 96 * 1024
"""Linux takes at most 128 KiB for one variable, and DTJ_TASK repeats the addresses with a little more around them."""
_HOST_LENGTH = 253
_ENDLESS = "spec: it is nested too deep, or contains itself"


def faults(manifest: Any) -> tuple[str, ...]:
    """What is wrong with a job that its CRD let in."""
    spec, unreadable = salvage(manifest)
    try:
        return _lines(unreadable, _found(manifest, spec))
    except RecursionError:
        return (_ENDLESS,)


def all_faults(manifest: Any) -> tuple[str, ...]:
    """What is wrong with a manifest, as far as that can be known without a cluster. Needs the extra `cli`."""
    from dtj_operator.api import validation  # noqa: PLC0415 - the operator's image lacks what this needs

    try:
        refused = validation.refusals(manifest)
        spec, unreadable = salvage(manifest)
        # What makes a spec unreadable is refused by the schema too, in better words.
        return _lines(refused or unreadable, _found(manifest, spec))
    except RecursionError:
        return (_ENDLESS,)


def _lines(*found: Iterable[str]) -> tuple[str, ...]:
    """Each fault once, and as one line: names in a manifest may hold what would break it or colour a terminal."""
    lines = dict.fromkeys(line for lines in found for line in lines)
    return tuple(line if line.isprintable() else line.encode("unicode_escape").decode() for line in lines)


def _found(manifest: Any, spec: JobSpec | None) -> Iterator[str]:
    if not isinstance(manifest, dict):
        return
    raw = manifest.get("spec")
    yield from template_faults(raw if isinstance(raw, dict) else {}, _settings(spec))
    if spec is None:
        return
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    yield from _address_faults(spec, str(metadata.get("name", "")), str(metadata.get("namespace", "default")))
    if spec.checkpoint is not None:
        yield from _checkpoint_faults(spec.checkpoint)
    yield from _pattern_faults(spec)
    yield from _annotation_faults(spec, metadata.get("annotations"))
    yield from frozen_faults(spec, parse_status(manifest))


def _settings(spec: JobSpec | None) -> Settings:
    if spec is None:
        network = Network()
        return Settings(network.port, network.status_port, trainer=None, injects=False, program=None, checkpoints=None)
    place = spec.checkpoint
    return Settings(
        port=spec.network.port,
        status_port=spec.network.status_port,
        trainer=spec.trainer_container,
        injects=spec.supervisor == "Inject",
        program=None if spec.program is None else names.PROGRAM_FOLDER,
        checkpoints=None if place is None or place.uri is not None else place.directory,
    )


def _address_faults(spec: JobSpec, job: str, namespace: str) -> Iterator[str]:
    """Addresses that are too long, one by one or all together."""
    domain = spec.network.cluster_domain
    tasks = [Task(role, index) for role in ROLES for index in range(_replicas(spec, role))]
    hosts = {task: names.host(job, namespace, task, domain) for task in tasks}
    longest = max(hosts.values(), key=len)
    if len(longest) > _HOST_LENGTH:
        yield (
            f"spec.network.clusterDomain: the address {longest} has {len(longest)} characters of at most "
            f"{_HOST_LENGTH}; use shorter names of job and namespace, or a shorter domain"
        )
    cluster: dict[str, list[str]] = {}
    for task, host in hosts.items():
        cluster.setdefault(task.role, []).append(f"{host}:{spec.network.port}")
    last = {"type": tasks[-1].role, "index": tasks[-1].index}
    size = len(json.dumps({"cluster": cluster, "task": last}, separators=(",", ":")).encode())
    if size > TF_CONFIG_BYTES:
        yield (
            f"spec.roles: TF_CONFIG for {len(tasks)} tasks takes {size} bytes of at most {TF_CONFIG_BYTES}; use fewer "
            "replicas with more devices each, or shorter names of job and namespace"
        )


def _replicas(spec: JobSpec, role: str) -> int:
    own = getattr(spec.roles, role)
    return 0 if own is None else int(own.replicas)


def _checkpoint_faults(place: Checkpoint) -> Iterator[str]:
    """Volume and claim that are none, as far as it takes to make them."""
    if place.volume is not None:
        if "name" in place.volume:
            yield "spec.checkpoint.volume.name: the operator names the volume; remove it, and leave the source"
        sources = [name for name in place.volume if name != "name"]
        if len(sources) != 1:
            have = f"it has {', '.join(map(str, sources))}" if sources else "it has none"
            yield f"spec.checkpoint.volume: name one source of a pod's volume, such as nfs or hostPath; {have}"
    if place.volume_claim_template is not None:
        yield from _claim_faults(place.volume_claim_template)


def _claim_faults(claim: Mapping[str, Any]) -> Iterator[str]:
    path = "spec.checkpoint.volumeClaimTemplate"
    for name in claim:
        if name not in ("metadata", "spec"):
            yield f"{path}.{name}: a claim template has metadata and spec; did you mean {path}.spec.{name}?"
    metadata = claim.get("metadata")
    for name in metadata if isinstance(metadata, dict) else ():
        if name not in ("labels", "annotations"):
            yield f"{path}.metadata.{name}: the operator sets it; leave labels and annotations only"
    wanted = claim.get("spec")
    if not isinstance(wanted, dict):
        yield f"{path}.spec: required; it has accessModes and resources"
        return
    modes, resources = wanted.get("accessModes"), wanted.get("resources")
    if not isinstance(modes, list) or not modes:
        yield f"{path}.spec.accessModes: required; a list such as [ReadWriteMany]"
    requests = resources.get("requests") if isinstance(resources, dict) else None
    if not isinstance(requests, dict) or "storage" not in requests:
        yield f"{path}.spec.resources.requests.storage: required; a size such as 10Gi"


def _pattern_faults(spec: JobSpec) -> Iterator[str]:
    patterns = [(place, rule.message_pattern) for place, rule in enumerate(spec.recovery.rules) if rule.message_pattern]
    if not patterns:
        return
    import re2  # noqa: PLC0415 - few jobs have patterns

    quiet = re2.Options()
    quiet.log_errors = False
    for place, pattern in patterns:
        try:
            re2.compile(pattern, quiet)
        except re2.error as problem:
            yield f"spec.recovery.rules[{place}].messagePattern: google-re2 refuses {pattern!r}: {_words(problem)}"


def _words(problem: Exception) -> str:
    text = problem.args[0] if problem.args else ""
    return text.decode(errors="replace") if isinstance(text, bytes) else str(text)


def _annotation_faults(spec: JobSpec, annotations: Any) -> Iterator[str]:
    text = annotations.get(names.ANNOTATION_FAULT) if isinstance(annotations, dict) else None
    if text is None:
        return
    path = f"metadata.annotations[{names.ANNOTATION_FAULT}]"
    try:
        task, _ = parse_fault(str(text))
    except ValueError as problem:
        yield f"{path}: {problem}"
        return
    if task.index >= _replicas(spec, task.role):
        yield f"{path}: the job has no {task}"
