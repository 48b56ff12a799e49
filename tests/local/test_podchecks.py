"""What a pod may not be, with kube-apiserver's path and sentence; and what is filled in when it may."""

from typing import Any

import pytest

from tests.local.calls import Calls, pod, refused

PODS = "v1/pods"


def container(**changes: Any) -> dict[str, Any]:
    return {"name": "trainer", "image": "trainer:1"} | changes


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        ({"containers": [{"name": "a"}]}, "spec.containers[0].image: Required value"),
        ({"containers": [{"image": "a"}]}, "spec.containers[0].name: Required value"),
        ({"containers": [container(name="A_b")]},
         'spec.containers[0].name: Invalid value: "A_b": a lowercase RFC 1123'),
        ({"containers": [container(), container()]}, 'spec.containers[1].name: Duplicate value: "trainer"'),
        ({"containers": [container(imagePullPolicy="Now")]},
         'spec.containers[0].imagePullPolicy: Unsupported value: "Now": supported values: "Always", "IfNotPresent"'),
        ({"containers": [container(ports=[{"containerPort": 70000}])]},
         "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"),
        ({"containers": [container(ports=[{"containerPort": 1, "name": "x"}, {"containerPort": 2, "name": "x"}])]},
         'spec.containers[0].ports[1].name: Duplicate value: "x"'),
        ({"containers": [container(ports=[{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}])]},
         "spec.containers[0].ports[1].hostPort: Duplicate value"),
        ({"containers": [container(env=[{"name": "A=B"}])]}, 'spec.containers[0].env[0].name: Invalid value: "A=B"'),
        ({"containers": [container(env=[{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}])]},
         "spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty"),
        ({"containers": [container(volumeMounts=[{"name": "data", "mountPath": "/d"}])]},
         'spec.containers[0].volumeMounts[0].name: Not found: "data"'),
        ({"volumes": [{"name": "d"}],
          "containers": [container(volumeMounts=[{"name": "d", "mountPath": "/d"}, {"name": "d", "mountPath": "/d"}])]},
         'spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/d": must be unique'),
        ({"volumes": [{"name": "d"}, {"name": "d"}]}, 'spec.volumes[1].name: Duplicate value: "d"'),
        ({"volumes": [{"name": "d", "emptyDir": {}, "hostPath": {"path": "/"}}]},
         "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"),
        ({"volumes": [{"name": "d", "persistentVolumeClaim": {"readOnly": True}}]},
         "spec.volumes[0].persistentVolumeClaim.claimName: Required value"),
        ({"containers": [container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})]},
         'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'),
        ({"containers": [container(resources={"requests": {"nvidia.com/gpu": "1"}})]},
         "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"),
        ({"containers": [container(resources={"limits": {"nvidia.com/gpu": "500m"}})]},
         'spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer'),
        ({"containers": [container(resources={"limits": {"gpu": "1"}})]},
         'spec.containers[0].resources.limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully'),
        ({"restartPolicy": "Sometimes"}, 'spec.restartPolicy: Unsupported value: "Sometimes"'),
        ({"hostname": "a.b"}, 'spec.hostname: Invalid value: "a.b": must not contain dots'),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and"),
        ({"tolerations": [{"operator": "Equal", "value": "x"}]}, "operator must be Exists when `key` is empty"),
        ({"schedulingGates": [{"name": "a/b"}, {"name": "a/b"}]},
         'spec.schedulingGates[1]: Duplicate value: "a/b"'),
        ({"schedulingGates": [{"name": "a/b"}], "nodeName": "n"},
         "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"),
        ({"initContainers": [container(name="i", restartPolicy="Now")]},
         'spec.initContainers[0].restartPolicy: Unsupported value: "Now": supported values: "Always", "OnFailure"'),
        ({"nodeSelector": {"a b": "c"}}, 'spec.nodeSelector: Invalid value: "a b": name part must consist of'),
    ],
)  # fmt: skip
def test_a_wrong_pod_is_told_its_path(spec: dict[str, Any], told: str) -> None:
    failure = refused(Calls().create, pod(**spec))
    assert (failure.code, failure.reason) == (422, "Invalid")
    assert str(failure).startswith('Pod "a" is invalid: ')
    assert told in str(failure)


def test_all_faults_are_told_at_once_with_their_causes() -> None:
    failure = refused(Calls().create, pod(containers=[{"name": "a"}], restartPolicy="x"))
    assert [cause["field"] for cause in failure.status["details"]["causes"]] == [
        "spec.containers[0].image",
        "spec.restartPolicy",
    ]
    assert failure.status["details"]["kind"] == "Pod"
    assert str(failure).startswith('Pod "a" is invalid: [spec.containers[0].image: Required value, spec.restartPolicy')


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"name": "A"}, 'metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain'),
        ({}, "metadata.name: Required value: name or generateName is required"),
        ({"name": "a", "labels": {"a": "b c"}}, 'metadata.labels: Invalid value: "b c": a valid label must be'),
        ({"name": "a", "labels": {"x" * 64: "b"}}, "name part must be no more than 63 bytes"),
        ({"name": "a", "annotations": {"a": "x" * (256 * 1024)}},
         "metadata.annotations: Too long: may not be more than"),
        ({"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]},
         "metadata.ownerReferences[0].uid"),
    ],
)  # fmt: skip
def test_wrong_metadata_is_told_its_path(metadata: dict[str, Any], told: str) -> None:
    failure = refused(Calls().create, pod() | {"metadata": metadata})
    assert failure.code == 422
    assert told in str(failure)


def test_what_a_pod_leaves_out_is_filled_in() -> None:
    calls = Calls()
    made = calls.create(pod(containers=[
        container(image="repo/x", ports=[{"containerPort": 80}], resources={"limits": {"cpu": 1}},
                  readinessProbe={"httpGet": {"port": 80}}),
    ], volumes=[{"name": "v"}, {"name": "c", "configMap": {"name": "x"}}]))  # fmt: skip
    spec = made["spec"]
    assert {key: spec[key] for key in sorted(spec) if key not in ("containers", "volumes", "tolerations")} == {
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
    }
    (only,) = spec["containers"]
    assert only["imagePullPolicy"] == "Always"
    assert only["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert only["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
    assert only["readinessProbe"] == {
        "failureThreshold": 3,
        "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
        "periodSeconds": 10,
        "successThreshold": 1,
        "timeoutSeconds": 1,
    }
    assert spec["volumes"] == [
        {"name": "v", "emptyDir": {}},
        {"name": "c", "configMap": {"name": "x", "defaultMode": 420}},
    ]
    assert [(one["key"], one["tolerationSeconds"]) for one in spec["tolerations"]] == [
        ("node.kubernetes.io/not-ready", 300),
        ("node.kubernetes.io/unreachable", 300),
    ]
    assert made["status"]["qosClass"] == "Burstable"


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"),
        ("a:latest", "Always"),
        ("a:1", "IfNotPresent"),
        ("host:5000/a", "Always"),
        ("a@sha256:0", "IfNotPresent"),
    ],
)
def test_an_image_that_moves_is_pulled_each_time(image: str, policy: str) -> None:
    made = Calls().create(pod(containers=[container(image=image)]))
    assert made["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_a_toleration_of_ones_own_is_kept() -> None:
    mine = {
        "key": "node.kubernetes.io/not-ready",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 3600,
    }
    made = Calls().create(pod(tolerations=[mine]))
    assert made["spec"]["tolerations"][0] == mine
    assert [one["key"] for one in made["spec"]["tolerations"][1:]] == ["node.kubernetes.io/unreachable"]


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        ({"spec": {"hostname": "b"}}, "spec: Forbidden: pod updates may not change fields other than"),
        ({"spec": {"containers": [container(command=["x"])]}}, "spec: Forbidden: pod updates may not change fields"),
        ({"spec": {"containers": [container(), container(name="b")]}}, "may not add or remove containers"),
        ({"spec": {"schedulingGates": [{"name": "x/y"}]}},
         "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'x/y'"),
    ],
)  # fmt: skip
def test_a_pods_spec_does_not_change(patch: dict[str, Any], told: str) -> None:
    calls = Calls()
    calls.create(pod())
    failure = refused(calls.patch, PODS, "a", patch)
    assert failure.code == 422
    assert told in str(failure)


def test_the_image_the_deadline_and_more_tolerations_may_change() -> None:
    calls = Calls()
    made = calls.create(pod())
    tolerations = [*made["spec"]["tolerations"], {"key": "x", "operator": "Exists"}]
    calls.patch(PODS, "a", {"spec": {"activeDeadlineSeconds": 5, "tolerations": tolerations}})
    changed = calls.patch(PODS, "a", {"spec": {"containers": [{"name": "trainer", "image": "b"}]}}, how="strategic")
    assert changed["spec"]["containers"][0]["image"] == "b"


def to_node(name: str) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "target": {"name": name}}


def test_gates_are_only_taken_away_and_hold_the_pod_until_then() -> None:
    calls = Calls()
    made = calls.create(pod(schedulingGates=[{"name": "dtj.dev/gang"}, {"name": "x/y"}]))
    assert made["status"]["conditions"][0]["reason"] == "SchedulingGated"
    failure = refused(calls.call, "create", f"{PODS}:binding", "a", body=to_node("n1"))
    assert failure.code == 409
    assert "has non-empty .spec.schedulingGates" in str(failure)
    calls.patch(PODS, "a", {"spec": {"schedulingGates": [{"name": "x/y"}], "nodeSelector": {"pool": "a"}}})
    calls.patch(PODS, "a", {"spec": {"schedulingGates": None}})
    calls.call("create", f"{PODS}:binding", "a", body=to_node("n1"))
    bound = calls.get(PODS, "a")
    assert bound["spec"]["nodeName"] == "n1"
    assert [(one["type"], one["status"]) for one in bound["status"]["conditions"]] == [("PodScheduled", "True")]
    failure = refused(calls.call, "create", f"{PODS}:binding", "a", body=to_node("n2"))
    assert "is already assigned to node" in str(failure)


def test_a_node_has_an_old_name_to_refer_to_it_by() -> None:
    reference = {"fieldRef": {"fieldPath": "spec.host"}}
    Calls().create(pod(containers=[container(env=[{"name": "NODE", "valueFrom": reference}])]))
    volume = {"name": "v", "downwardAPI": {"items": [{"path": "node", **reference}]}}
    assert '.fieldPath: Unsupported value: "spec.nodeName"' in str(refused(Calls().create, pod(volumes=[volume])))


def test_a_priority_class_gives_its_value() -> None:
    calls = Calls()
    calls.create(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
    )
    assert calls.create(pod(priorityClassName="high"))["spec"]["priority"] == 7
    failure = refused(calls.create, pod("b", priorityClassName="low"))
    assert "no PriorityClass with name low was found" in str(failure)
