"""What a job takes from objects that a cluster would have already. An embedded cluster has only those of the file."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from dtj_operator.cli.manifest import Document

Json = dict[str, Any]


CLAIM = "PersistentVolumeClaim"


class Missing(msgspec.Struct, frozen=True):
    """An object that the job names, at `path`, and no document holds."""

    path: str
    kind: str
    name: str
    namespace: str

    def __str__(self) -> str:
        more = ", or have --make-claims make an empty one" if self.kind == CLAIM else ""
        return (
            f"{self.path}: there is no {self.kind} {self.name} in namespace {self.namespace}; "
            f"an embedded cluster has only what the file holds: add it there{more}"
        )

    def made(self) -> Json:
        """An empty claim in its place."""
        return {
            "apiVersion": "v1",
            "kind": CLAIM,
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
        }


def missing(job: Document, documents: Sequence[Document]) -> list[Missing]:
    """Each ConfigMap, Secret or claim that the job names and no document holds, once."""
    there = {(d.body.get("kind"), d.namespace, d.name) for d in documents}
    found: dict[tuple[str, str], Missing] = {}
    for path, kind, name in _references(job.body.get("spec") or {}):
        if (kind, job.namespace, name) not in there:
            found.setdefault((kind, name), Missing(path, kind, name, job.namespace))
    return list(found.values())


def _references(spec: Json) -> Iterator[tuple[str, str, str]]:
    checkpoint, program = spec.get("checkpoint") or {}, spec.get("program") or {}
    if name := checkpoint.get("persistentVolumeClaim"):
        yield "spec.checkpoint.persistentVolumeClaim", CLAIM, name
    if volume := checkpoint.get("volume"):
        yield from _of_volume(volume, "spec.checkpoint.volume")
    if name := program.get("configMap"):
        yield "spec.program.configMap", "ConfigMap", name
    templates = {"spec.template": spec.get("template")}
    templates |= {f"spec.roles.{role}.template": own.get("template") for role, own in (spec.get("roles") or {}).items()}
    for path, template in templates.items():
        yield from _of_pod((template or {}).get("spec") or {}, f"{path}.spec")


def _of_pod(pod: Json, path: str) -> Iterator[tuple[str, str, str]]:
    for place, volume in enumerate(pod.get("volumes") or ()):
        yield from _of_volume(volume, f"{path}.volumes[{place}]")
    for field in ("containers", "initContainers"):
        for place, container in enumerate(pod.get(field) or ()):
            yield from _of_container(container, f"{path}.{field}[{place}]")


def _of_volume(volume: Json, path: str) -> Iterator[tuple[str, str, str]]:
    for field, kind, key in (
        ("persistentVolumeClaim", CLAIM, "claimName"),
        ("configMap", "ConfigMap", "name"),
        ("secret", "Secret", "secretName"),
    ):
        source = volume.get(field) or {}
        if source.get(key) and not source.get("optional"):
            yield f"{path}.{field}.{key}", kind, source[key]
    for place, one in enumerate((volume.get("projected") or {}).get("sources") or ()):
        for field, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
            source = one.get(field) or {}
            if source.get("name") and not source.get("optional"):
                yield f"{path}.projected.sources[{place}].{field}.name", kind, source["name"]


def _of_container(container: Json, path: str) -> Iterator[tuple[str, str, str]]:
    for place, source in enumerate(container.get("envFrom") or ()):
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            reference = source.get(field) or {}
            if reference.get("name") and not reference.get("optional"):
                yield f"{path}.envFrom[{place}].{field}", kind, reference["name"]
    for place, variable in enumerate(container.get("env") or ()):
        for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            reference = (variable.get("valueFrom") or {}).get(field) or {}
            if reference.get("name") and not reference.get("optional"):
                yield f"{path}.env[{place}].valueFrom.{field}", kind, reference["name"]
