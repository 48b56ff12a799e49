"""What an update may change in a pod's spec, which is nearly nothing."""

from typing import Any

from dtj_operator.local.failures import FieldFault, forbidden_field, invalid

Json = dict[str, Any]

_MUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def faults(body: Json, old: Json) -> list[FieldFault]:
    new_spec, old_spec = body["spec"], old["spec"]
    if new_spec == old_spec:
        return []
    found = _gate_faults(new_spec, old_spec)
    found += _container_count_faults(new_spec, old_spec)
    deadline, old_deadline = new_spec.get("activeDeadlineSeconds"), old_spec.get("activeDeadlineSeconds")
    if old_deadline is not None and (deadline is None or deadline > old_deadline):
        told = "must be less than or equal to previous value"
        if deadline is None:
            told = "must not update from a positive integer to nil value"
        found.append(invalid("spec.activeDeadlineSeconds", deadline, told))
    if old_spec.get("schedulingGates") and not _only_adds(new_spec, old_spec):
        told = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        found.append(invalid("spec.nodeSelector", new_spec.get("nodeSelector") or {}, told))
    lost = [one for one in old_spec.get("tolerations") or [] if one not in (new_spec.get("tolerations") or [])]
    if lost:
        told = "existing toleration can not be modified except its tolerationSeconds"
        found.append(forbidden_field("spec.tolerations", told))
    if not found and _fixed(new_spec, old_spec) != _fixed(old_spec, old_spec):
        changed = sorted(key for key in new_spec.keys() | old_spec.keys() if new_spec.get(key) != old_spec.get(key))
        found.append(forbidden_field("spec", f"{_MUTABLE}\n  changed: {', '.join(f'spec.{key}' for key in changed)}"))
    return found


def _gate_faults(new: Json, old: Json) -> list[FieldFault]:
    before = {gate["name"] for gate in old.get("schedulingGates") or []}
    return [
        forbidden_field(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate['name']}'",
        )
        for index, gate in enumerate(new.get("schedulingGates") or [])
        if gate["name"] not in before
    ]


def _container_count_faults(new: Json, old: Json) -> list[FieldFault]:
    return [
        forbidden_field(f"spec.{field}", "pod updates may not add or remove containers")
        for field in ("containers", "initContainers")
        if len(new.get(field) or []) != len(old.get(field) or [])
    ]


def _only_adds(new: Json, old: Json) -> bool:
    selector = new.get("nodeSelector") or {}
    return all(selector.get(key) == value for key, value in (old.get("nodeSelector") or {}).items())


def _fixed(spec: Json, old: Json) -> Json:
    """The spec without what may change."""
    fixed = {
        key: value
        for key, value in spec.items()
        if key not in ("activeDeadlineSeconds", "tolerations", "schedulingGates")
    }
    for field in ("containers", "initContainers"):
        if field in fixed:
            fixed[field] = [{key: value for key, value in one.items() if key != "image"} for one in fixed[field]]
    if old.get("schedulingGates"):
        # A gated pod may still be steered to other nodes, within what it asked for.
        old_selector = old.get("nodeSelector") or {}
        selector = fixed.pop("nodeSelector", None) or {}
        fixed["nodeSelector"] = {key: selector.get(key) for key in old_selector}
        fixed["affinity"] = {
            key: value for key, value in (fixed.get("affinity") or {}).items() if key != "nodeAffinity"
        }
    if old.get("terminationGracePeriodSeconds", 0) < 0 and fixed.get("terminationGracePeriodSeconds") == 1:
        fixed["terminationGracePeriodSeconds"] = old["terminationGracePeriodSeconds"]
    return fixed
