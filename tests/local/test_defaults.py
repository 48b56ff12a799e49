"""An empty text in a field that is no pointer in Go is filled in like an absent one; in a pointer it is refused."""

from typing import Any

import pytest

from tests.local.calls import Calls, pod, refused
from tests.local.training import definition

Json = dict[str, Any]


def service(**spec: Any) -> Json:
    ports = [{"port": 80, "protocol": ""}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": ports, **spec}}


def trainer(**changes: Any) -> Json:
    return pod(containers=[{"name": "trainer", "image": "a:1", **changes}])


def named(**names: str) -> Json:
    manifest = definition()
    manifest["spec"]["names"] |= names
    return manifest


def probed(**call: Any) -> Json:
    return trainer(readinessProbe={"httpGet": {"port": 80, **call}})


VARIABLE = {"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "", "fieldPath": "metadata.name"}}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "type": ""}
VOLUME = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "a"},
          "spec": {"capacity": {"storage": "1"}, "persistentVolumeReclaimPolicy": ""}}  # fmt: skip
CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"}, "spec": {
    "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeMode": ""}}  # fmt: skip
POLICY = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "a"},
          "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 1, "protocol": ""}]}]}}  # fmt: skip


@pytest.mark.parametrize(
    ("manifest", "path", "value"),
    [
        (service(sessionAffinity=""), "spec.sessionAffinity", "None"),
        (service(type=""), "spec.type", "ClusterIP"),
        (service(), "spec.ports.0.protocol", "TCP"),
        (pod(restartPolicy=""), "spec.restartPolicy", "Always"),
        (pod(dnsPolicy=""), "spec.dnsPolicy", "ClusterFirst"),
        (pod(schedulerName=""), "spec.schedulerName", "default-scheduler"),
        (trainer(imagePullPolicy=""), "spec.containers.0.imagePullPolicy", "IfNotPresent"),
        (trainer(terminationMessagePolicy=""), "spec.containers.0.terminationMessagePolicy", "File"),
        (trainer(terminationMessagePath=""), "spec.containers.0.terminationMessagePath", "/dev/termination-log"),
        (trainer(ports=[{"containerPort": 1, "protocol": ""}]), "spec.containers.0.ports.0.protocol", "TCP"),
        (trainer(env=[VARIABLE]), "spec.containers.0.env.0.valueFrom.fieldRef.apiVersion", "v1"),
        (probed(scheme=""), "spec.containers.0.readinessProbe.httpGet.scheme", "HTTP"),
        (probed(path=""), "spec.containers.0.readinessProbe.httpGet.path", "/"),
        (SECRET, "type", "Opaque"),
        (VOLUME, "spec.persistentVolumeReclaimPolicy", "Retain"),
        (named(singular=""), "spec.names.singular", "training"),
        (named(listKind=""), "spec.names.listKind", "TrainingList"),
    ],
)
def test_an_empty_text_is_filled_in(manifest: Json, path: str, value: str) -> None:
    found = Calls().create(manifest)
    for step in path.split("."):
        found = found[int(step) if step.isdigit() else step]
    assert found == value


def test_an_empty_address_is_given_one() -> None:
    spec = Calls().create(service(clusterIP=""))["spec"]
    assert spec["clusterIP"].startswith("10.96.")
    assert spec["clusterIPs"] == [spec["clusterIP"]]


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        (CLAIM, 'spec.volumeMode: Unsupported value: ""'),
        (POLICY, 'spec.ingress[0].ports[0].protocol: Unsupported value: ""'),
    ],
)
def test_an_empty_text_is_refused_in_a_pointer(manifest: Json, told: str) -> None:
    assert told in str(refused(Calls().create, manifest))
