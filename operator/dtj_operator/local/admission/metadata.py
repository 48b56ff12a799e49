"""The checks of `metadata` that all kinds share, at creation and at update. The rule for a kind's name is handed in."""

from collections.abc import Callable
from typing import Any

from dtj_operator.local.admission import names
from dtj_operator.local.failures import FieldFault, invalid, required

Json = dict[str, Any]
NameRule = Callable[[str], list[str]]

# The total of keys and values of one object's annotations.
ANNOTATION_BYTES = 256 * 1024
IMMUTABLE = "field is immutable"
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def faults(metadata: Json, name_rule: NameRule, old: Json | None) -> list[FieldFault]:
    """Of an object that is to be created, or that an update would leave after `old`."""
    if old is not None:
        return _update_faults(metadata, old)
    found: list[FieldFault] = []
    name = metadata.get("name")
    if metadata.get("generateName"):
        # Its last character may be a hyphen, since something follows.
        stem = metadata["generateName"].removesuffix("-") + ("a" if metadata["generateName"].endswith("-") else "")
        found += [invalid("metadata.generateName", metadata["generateName"], fault) for fault in name_rule(stem)]
    if not name:
        found.append(required("metadata.name", "name or generateName is required"))
    else:
        found += [invalid("metadata.name", name, fault) for fault in name_rule(name)]
    return found + _part_faults(metadata, {})


def label_faults(labels: dict[str, str], path: str) -> list[FieldFault]:
    found: list[FieldFault] = []
    for key, value in labels.items():
        found += [invalid(path, key, fault) for fault in names.qualified_name_faults(key)]
        found += [invalid(path, value, fault) for fault in names.label_value_faults(value)]
    return found


def _part_faults(metadata: Json, old: Json) -> list[FieldFault]:
    """Of what is new or changed: labels, annotations, owners, finalizers."""
    found: list[FieldFault] = []
    if metadata.get("labels") != old.get("labels"):
        found += label_faults(metadata.get("labels") or {}, "metadata.labels")
    if metadata.get("annotations") != old.get("annotations"):
        found += _annotation_faults(metadata.get("annotations") or {})
    if metadata.get("ownerReferences") != old.get("ownerReferences"):
        found += _owner_faults(metadata.get("ownerReferences") or [])
    if metadata.get("finalizers") != old.get("finalizers"):
        for index, one in enumerate(metadata.get("finalizers") or []):
            found += [invalid("metadata.finalizers", one, fault) for fault in names.qualified_name_faults(one)]
            if "/" not in one and one not in _STANDARD_FINALIZERS:
                told = "name is neither a standard finalizer name nor is it fully qualified"
                found.append(invalid(f"metadata.finalizers[{index}]", one, told))
    return found


def _update_faults(metadata: Json, old: Json) -> list[FieldFault]:
    """The update has already carried over what a client may leave out."""
    found = _part_faults(metadata, old)
    found += [
        invalid(f"metadata.{field}", metadata.get(field), IMMUTABLE)
        for field in ("uid", "creationTimestamp")
        if metadata.get(field) != old.get(field)
    ]
    if old.get("deletionTimestamp"):
        added = [one for one in metadata.get("finalizers") or [] if one not in (old.get("finalizers") or [])]
        if added:
            found.append(
                FieldFault(
                    "FieldValueForbidden",
                    "metadata.finalizers",
                    "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
                    f"[]string{{{', '.join(names_quoted(added))}}}",
                )
            )
    return found


def selector_faults(selector: Json, path: str) -> list[FieldFault]:
    """Of a LabelSelector."""
    found = label_faults(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, one in enumerate(selector.get("matchExpressions") or []):
        at = f"{path}.matchExpressions[{index}]"
        key, operator, values = one.get("key", ""), one.get("operator", ""), one.get("values") or []
        found += [invalid(f"{at}.key", key, fault) for fault in names.qualified_name_faults(key)]
        if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            found.append(invalid(f"{at}.operator", operator, "not a valid selector operator"))
        elif operator in ("In", "NotIn") and not values:
            found.append(required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    return found


def names_quoted(listed: list[str]) -> list[str]:
    return [f'"{one}"' for one in listed]


def _annotation_faults(annotations: dict[str, str]) -> list[FieldFault]:
    found = []
    for key in annotations:
        found += [invalid("metadata.annotations", key, fault) for fault in names.qualified_name_faults(key.lower())]
    total = sum(len(key) + len(value) for key, value in annotations.items())
    if total > ANNOTATION_BYTES:
        found.append(
            FieldFault(
                "FieldValueTooLong", "metadata.annotations", f"Too long: may not be more than {ANNOTATION_BYTES} bytes"
            )
        )
    return found


def _owner_faults(owners: list[Json]) -> list[FieldFault]:
    found = []
    controllers = []
    for index, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{index}]"
        empty = [field for field in ("apiVersion", "kind", "name", "uid") if not owner.get(field)]
        found += [required(f"{path}.{field}", "must not be empty") for field in empty]
        version, kind = owner.get("apiVersion") or "", owner.get("kind")
        if version.count("/") > 1:
            told = "must be <group>/<version> or <version>"
            found.append(invalid(f"{path}.apiVersion", version, told))
        if kind == "Event" and version.rpartition("/")[0] in ("", "events.k8s.io"):
            group, _, short = version.rpartition("/")
            found.append(invalid(path, owner, f"{group}/{short}, Kind={kind} is disallowed from being an owner"))
        if owner.get("controller"):
            controllers.append(owner)
    if len(controllers) > 1:
        first, second = controllers[0], controllers[1]
        found.append(
            invalid(
                "metadata.ownerReferences",
                owners,
                'Only one reference can have Controller set to true. Found "true" in references for '
                f"{first.get('kind')}/{first.get('name')} and {second.get('kind')}/{second.get('name')}",
            )
        )
    return found
