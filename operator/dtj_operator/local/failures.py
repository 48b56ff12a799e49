"""How the API refuses: a Kubernetes `Status` as an exception, and the field faults that a 422 lists.

What is refused is decided elsewhere.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

Json = dict[str, Any]

NO_VALUE: Any = object()


class FieldFault(msgspec.Struct, frozen=True):
    """One entry of a 422's `details.causes`."""

    reason: str
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else f"<nil>: {self.message}"


class ApiFailure(Exception):
    """A refused request. `status` is the `Status` object that kube-apiserver would answer."""

    text = ""
    """What is answered instead of the object, where kube-apiserver's router answers by itself."""
    warnings: tuple[str, ...] = ()

    def __init__(self, code: int, reason: str, message: str, details: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code,
        }
        if details is not None:
            self.status["details"] = {key: value for key, value in details.items() if value}
        if not reason:
            del self.status["reason"]


def quoted(text: str) -> str:
    """The text as Go's %q writes it."""
    return json.dumps(text, ensure_ascii=False)


def required(field: str, detail: str = "") -> FieldFault:
    return FieldFault("FieldValueRequired", field, "Required value" + (f": {detail}" if detail else ""))


def invalid(field: str, value: Any, detail: str) -> FieldFault:
    """`NO_VALUE` leaves the value out, as kube-apiserver does for objects and lists."""
    shown = "" if value is NO_VALUE else f" {shown_value(value)}:"
    return FieldFault("FieldValueInvalid", field, f"Invalid value:{shown} {detail}")


def type_invalid(field: str, value: Any, detail: str) -> FieldFault:
    return FieldFault("FieldValueTypeInvalid", field, f"Invalid value: {shown_value(value)}: {detail}")


def not_supported(field: str, value: Any, supported: Sequence[str]) -> FieldFault:
    listed = ", ".join(quoted(one) for one in supported)
    return FieldFault(
        "FieldValueNotSupported", field, f"Unsupported value: {shown_value(value)}: supported values: {listed}"
    )


def duplicate(field: str, value: Any) -> FieldFault:
    return FieldFault("FieldValueDuplicate", field, f"Duplicate value: {shown_value(value)}")


def forbidden_field(field: str, detail: str) -> FieldFault:
    return FieldFault("FieldValueForbidden", field, f"Forbidden: {detail}")


def missing_reference(field: str, value: Any) -> FieldFault:
    return FieldFault("FieldValueNotFound", field, f"Not found: {shown_value(value)}")


def too_long(field: str, limit: int) -> FieldFault:
    return FieldFault("FieldValueTooLong", field, f"Too long: may not be more than {limit} bytes")


def too_many(field: str, count: int, limit: int) -> FieldFault:
    return FieldFault("FieldValueTooMany", field, f"Too many: {count}: must have at most {limit} items")


def not_found(resource: str, name: str) -> ApiFailure:
    return ApiFailure(404, "NotFound", f"{resource} {quoted(name)} not found", _about(resource, name))


def no_such_path() -> ApiFailure:
    return ApiFailure(404, "NotFound", "the server could not find the requested resource", {})


def no_such_group() -> ApiFailure:
    failure = no_such_path()
    failure.text = "404 page not found\n"
    return failure


def already_exists(resource: str, name: str, *, going: bool) -> ApiFailure:
    told = f"{'object is being deleted: ' if going else ''}{resource} {quoted(name)} already exists"
    return ApiFailure(409, "AlreadyExists", told, _about(resource, name))


def conflict(resource: str, name: str, why: str) -> ApiFailure:
    message = f"Operation cannot be fulfilled on {resource} {quoted(name)}: {why}"
    return ApiFailure(409, "Conflict", message, _about(resource, name))


def modified(resource: str, name: str) -> ApiFailure:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def refused(resource: str, name: str, why: str) -> ApiFailure:
    """403 Forbidden, as admission plugins answer."""
    return ApiFailure(403, "Forbidden", f"{resource} {quoted(name)} is forbidden: {why}", _about(resource, name))


def bad_request(message: str) -> ApiFailure:
    return ApiFailure(400, "BadRequest", message)


def unprocessable(kind: str, group: str, name: str, faults: Iterable[FieldFault]) -> ApiFailure:
    """422 Invalid with one cause per fault; equal sentences are said once."""
    listed = list(faults)
    sentences = list(dict.fromkeys(str(fault) for fault in listed))
    told = sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"
    causes = [{"reason": fault.reason, "message": fault.message, "field": fault.field or "<nil>"} for fault in listed]
    details = {"name": name, "group": group, "kind": kind, "causes": causes}
    qualified = f"{kind}.{group}" if group else kind
    return ApiFailure(422, "Invalid", f"{qualified} {quoted(name)} is invalid: {told}", details)


def unexpected(message: str) -> ApiFailure:
    """500 without a reason, as kube-apiserver answers an error that it has no class for."""
    return ApiFailure(500, "", message)


def expired(message: str) -> ApiFailure:
    return ApiFailure(410, "Expired", message)


def method_not_allowed() -> ApiFailure:
    return ApiFailure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def unsupported_media_type(accepted: Sequence[str]) -> ApiFailure:
    listed = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return ApiFailure(415, "UnsupportedMediaType", message)


def shown_value(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _about(resource: str, name: str) -> Json:
    plural, _, group = resource.partition(".")
    return {"name": name, "group": group, "kind": plural}
