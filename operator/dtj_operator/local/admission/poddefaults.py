"""What kube-apiserver fills into a pod: defaults of the spec, its first status, and its quality-of-service class."""

from collections.abc import Iterator
from typing import Any

from dtj_operator.local.admission.filling import fill
from dtj_operator.local.quantity import in_thousandths

Json = dict[str, Any]

# 0644, the mode of projected files.
_FILE_MODE = 420
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def default(body: Json) -> None:
    spec = body.setdefault("spec", {})
    fill(spec, "restartPolicy", "Always")
    # A negative one stands for the shortest.
    grace = spec.setdefault("terminationGracePeriodSeconds", 30)
    spec["terminationGracePeriodSeconds"] = 1 if grace < 0 else grace
    fill(spec, "dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    fill(spec, "schedulerName", "default-scheduler")
    spec.setdefault("enableServiceLinks", True)
    _same_account(spec)
    for container in containers(spec):
        _default_container(container, host_network=bool(spec.get("hostNetwork")))
    for volume in spec.get("volumes") or []:
        _default_volume(volume)


def fresh_status(body: Json) -> None:
    """The status of a pod that was just created."""
    spec = body["spec"]
    status: Json = {"phase": "Pending", "qosClass": quality_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": None,
                "lastTransitionTime": body["metadata"].get("creationTimestamp"),
            }
        ]
    body["status"] = status


def containers(spec: Json) -> Iterator[Json]:
    """Init containers first."""
    yield from spec.get("initContainers") or []
    yield from spec.get("containers") or []


def placed_containers(spec: Json) -> Iterator[tuple[str, Json]]:
    """The same with the path of each."""
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or []):
            yield f"spec.{field}[{index}]", container


def quality_class(spec: Json) -> str:
    """`Guaranteed`, `Burstable` or `BestEffort`, by cpu and memory alone."""
    requests: set[str] = set()
    guaranteed = True
    for container in containers(spec):
        resources = container.get("resources") or {}
        asked, limits = (_amounts(resources.get(field) or {}) for field in ("requests", "limits"))
        for name in ("cpu", "memory"):
            if name in asked or name in limits:
                requests.add(name)
            if name not in limits or asked.get(name, limits[name]) != limits[name]:
                guaranteed = False
    if not requests:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _amounts(given: Json) -> Json:
    """Those that are more than nothing."""
    return {name: amount for name, amount in given.items() if amount != "0"}


def _same_account(spec: Json) -> None:
    # The old name of the field is kept equal to the new one.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def _default_container(container: Json, *, host_network: bool) -> None:
    image = container.get("image", "")
    tag = image.rpartition("/")[2].partition(":")[2]
    floats = tag in ("", "latest") and "@" not in image
    fill(container, "imagePullPolicy", "Always" if floats else "IfNotPresent")
    fill(container, "terminationMessagePath", "/dev/termination-log")
    fill(container, "terminationMessagePolicy", "File")
    resources = container.setdefault("resources", {})
    if limits := resources.get("limits"):
        resources["requests"] = {**limits, **(resources.get("requests") or {})}
    for bound in ("limits", "requests"):
        if amounts := resources.get(bound):
            resources[bound] = {name: in_thousandths(amount) for name, amount in amounts.items()}
    for port in container.get("ports") or []:
        fill(port, "protocol", "TCP")
        if host_network:
            port.setdefault("hostPort", port.get("containerPort"))
    for variable in container.get("env") or []:
        source = variable.get("valueFrom") or {}
        if field := source.get("fieldRef"):
            fill(field, "apiVersion", "v1")
        if field := source.get("resourceFieldRef"):
            field.setdefault("divisor", "0")
    for name in _PROBES:
        if probe := container.get(name):
            _default_probe(probe)
    for handler in (container.get("lifecycle") or {}).values():
        if isinstance(handler, dict):
            _default_http(handler)


def _default_probe(probe: Json) -> None:
    for field, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        if not probe.get(field):
            probe[field] = value
    _default_http(probe)


def _default_http(handler: Json) -> None:
    if call := handler.get("httpGet"):
        fill(call, "path", "/")
        fill(call, "scheme", "HTTP")


def _default_volume(volume: Json) -> None:
    if volume.keys() <= {"name"}:
        volume["emptyDir"] = {}
    for source in ("configMap", "secret", "downwardAPI", "projected"):
        if source in volume:
            volume[source].setdefault("defaultMode", _FILE_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    downward = [volume.get("downwardAPI") or {}]
    for source in (volume.get("projected") or {}).get("sources") or []:
        downward.append(source.get("downwardAPI") or {})
        if token := source.get("serviceAccountToken"):
            token.setdefault("expirationSeconds", 3600)
    for one in downward:
        for item in one.get("items") or []:
            if field := item.get("fieldRef"):
                fill(field, "apiVersion", "v1")
