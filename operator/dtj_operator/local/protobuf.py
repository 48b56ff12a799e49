"""Kubernetes' protobuf encoding, read for the few kinds that kubectl sends in it. Never written.

Those are the objects of `kubectl create namespace`, `auth can-i`, `drain` and the like. A client that can read JSON
too, as kubectl can, gets its answers in JSON.
"""

import base64
import datetime
from collections.abc import Iterator
from typing import Any

from dtj_operator.local.failures import ApiFailure, bad_request

Json = dict[str, Any]
# A message: field number → (JSON name, type). Types: `string`, `int`, `number` (an int of which 0 says something),
# `bool`, `bytes`, `time`, `int-or-string`, `quantity`, the name of a message; with `*` a list, with `{}` a map from
# strings.
Message = dict[int, tuple[str, str]]

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"

# The numbers are those of Kubernetes' generated.proto files.
_MESSAGES: dict[str, Message] = {
    "Unknown": {1: ("typeMeta", "TypeMeta"), 2: ("raw", "raw")},
    "TypeMeta": {1: ("apiVersion", "string"), 2: ("kind", "string")},
    "ObjectMeta": {
        1: ("name", "string"), 2: ("generateName", "string"), 3: ("namespace", "string"), 5: ("uid", "string"),
        6: ("resourceVersion", "string"), 7: ("generation", "int"), 8: ("creationTimestamp", "time"),
        9: ("deletionTimestamp", "time"), 11: ("labels", "{}string"), 12: ("annotations", "{}string"),
        13: ("ownerReferences", "*OwnerReference"), 14: ("finalizers", "*string"),
    },
    "OwnerReference": {
        1: ("kind", "string"), 3: ("name", "string"), 4: ("uid", "string"), 5: ("apiVersion", "string"),
        6: ("controller", "bool"), 7: ("blockOwnerDeletion", "bool"),
    },
    "ConfigMap": {
        1: ("metadata", "ObjectMeta"), 2: ("data", "{}string"), 3: ("binaryData", "{}bytes"), 4: ("immutable", "bool"),
    },
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "number"), 2: ("preconditions", "Preconditions"), 3: ("orphanDependents", "bool"),
        4: ("propagationPolicy", "string"), 5: ("dryRun", "*string"),
    },
    "Preconditions": {1: ("uid", "string"), 2: ("resourceVersion", "string")},
    "Eviction": {1: ("metadata", "ObjectMeta"), 2: ("deleteOptions", "DeleteOptions")},
    "LabelSelector": {1: ("matchLabels", "{}string"), 2: ("matchExpressions", "*LabelSelectorRequirement")},
    "LabelSelectorRequirement": {1: ("key", "string"), 2: ("operator", "string"), 3: ("values", "*string")},
    "LocalObjectReference": {1: ("name", "string")},
    "Namespace": {1: ("metadata", "ObjectMeta"), 2: ("spec", "NamespaceSpec")},
    "NamespaceSpec": {1: ("finalizers", "*string")},
    "PodDisruptionBudget": {1: ("metadata", "ObjectMeta"), 2: ("spec", "PodDisruptionBudgetSpec")},
    "PodDisruptionBudgetSpec": {
        1: ("minAvailable", "int-or-string"), 2: ("selector", "LabelSelector"), 3: ("maxUnavailable", "int-or-string"),
        4: ("unhealthyPodEvictionPolicy", "string"),
    },
    "PriorityClass": {
        1: ("metadata", "ObjectMeta"), 2: ("value", "number"), 3: ("globalDefault", "bool"),
        4: ("description", "string"), 5: ("preemptionPolicy", "string"),
    },
    "ResourceQuota": {1: ("metadata", "ObjectMeta"), 2: ("spec", "ResourceQuotaSpec")},
    "ResourceQuotaSpec": {1: ("hard", "{}quantity"), 2: ("scopes", "*string")},
    "Secret": {
        1: ("metadata", "ObjectMeta"), 2: ("data", "{}bytes"), 3: ("type", "string"), 4: ("stringData", "{}string"),
        5: ("immutable", "bool"),
    },
    "SelfSubjectAccessReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "SelfSubjectAccessReviewSpec")},
    "SelfSubjectAccessReviewSpec": {
        1: ("resourceAttributes", "ResourceAttributes"), 2: ("nonResourceAttributes", "NonResourceAttributes"),
    },
    "NonResourceAttributes": {1: ("path", "string"), 2: ("verb", "string")},
    "ResourceAttributes": {
        1: ("namespace", "string"), 2: ("verb", "string"), 3: ("group", "string"), 4: ("version", "string"),
        5: ("resource", "string"), 6: ("subresource", "string"), 7: ("name", "string"),
    },
    "SelfSubjectReview": {1: ("metadata", "ObjectMeta")},
    "SelfSubjectRulesReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "SelfSubjectRulesReviewSpec")},
    "SelfSubjectRulesReviewSpec": {1: ("namespace", "string")},
    "Service": {1: ("metadata", "ObjectMeta"), 2: ("spec", "ServiceSpec")},
    "ServiceSpec": {
        1: ("ports", "*ServicePort"), 2: ("selector", "{}string"), 3: ("clusterIP", "string"), 4: ("type", "string"),
        10: ("externalName", "string"),
    },
    "ServicePort": {
        1: ("name", "string"), 2: ("protocol", "string"), 3: ("port", "int"), 4: ("targetPort", "int-or-string"),
        5: ("nodePort", "int"),
    },
    "ServiceAccount": {
        1: ("metadata", "ObjectMeta"), 3: ("imagePullSecrets", "*LocalObjectReference"),
        4: ("automountServiceAccountToken", "bool"),
    },
    "MapEntry": {1: ("key", "string"), 2: ("value", "raw")},
    "Quantity": {1: ("string", "string")},
    "IntOrString": {1: ("type", "int"), 2: ("intVal", "int"), 3: ("strVal", "string")},
    "Time": {1: ("seconds", "int"), 2: ("nanos", "int")},
}  # fmt: skip
# Empty where Go's zero value says "not set".
_ZERO_MEANS_UNSET = ("", 0, False)


def decode(data: bytes) -> Json:
    """The object with its type header. 415 for a kind that is not in the table, 400 for what is no protobuf."""
    if not data.startswith(_MAGIC):
        raise bad_request("the protobuf body does not start with Kubernetes' magic number")
    try:
        envelope = _message("Unknown", data[len(_MAGIC) :])
        header = envelope.get("typeMeta") or {}
        kind = header.get("kind", "")
        if kind not in _MESSAGES:
            told = f"the embedded cluster reads {kind or 'this kind'} in JSON only"
            raise ApiFailure(415, "UnsupportedMediaType", told)
        return {**header, **_message(kind, envelope.get("raw", b""))}
    except (IndexError, UnicodeDecodeError) as why:
        raise bad_request(f"the protobuf body cannot be read: {why}") from None


def _message(name: str, data: bytes) -> Json:
    found: Json = {}
    known = _MESSAGES[name]
    for number, value in _fields(data):
        if number not in known:
            continue
        field, notation = known[number]
        if notation.startswith("*"):
            found.setdefault(field, []).append(_value(notation[1:], value))
        elif notation.startswith("{}"):
            entry = _message("MapEntry", _bytes(value))
            found.setdefault(field, {})[entry.get("key", "")] = _value(notation[2:], entry.get("value", b""))
        else:
            decoded = _value(notation, value)
            if decoded not in _ZERO_MEANS_UNSET or notation in ("bool", "number"):
                found[field] = decoded
    return found


def _value(notation: str, value: int | bytes) -> Any:
    match notation:
        case "string":
            return _bytes(value).decode()
        case "raw":
            return value
        case "bytes":
            return base64.b64encode(_bytes(value)).decode()
        case "bool":
            return bool(value)
        case "int" | "number":
            return value
        case "quantity":
            return _message("Quantity", _bytes(value)).get("string", "0")
        case "time":
            seconds = _message("Time", _bytes(value)).get("seconds")
            return _time(seconds) if seconds is not None else ""
        case "int-or-string":
            either = _message("IntOrString", _bytes(value))
            return either.get("strVal", "") if either.get("type") == 1 else either.get("intVal", 0)
        case message:
            return _message(message, _bytes(value))


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            # int32 and int64 are written in two's complement.
            yield number, value - (1 << 64) if value >= 1 << 63 else value
        elif wire == 2:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise IndexError("a field is longer than the body")
            yield number, data[at : at + length]
            at += length
        else:
            at += 8 if wire == 1 else 4


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise IndexError("a number stands where a message should")
    return value


def _time(seconds: int) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
