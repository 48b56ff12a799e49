"""Conditions of a status: finding one, setting one. Which ones hold is decided elsewhere."""

from typing import Literal

from msgspec.structs import replace

from dtj_operator.api.bounds import cut
from dtj_operator.api.reasons import Reason
from dtj_operator.api.status import Condition, ConditionType, JobStatus, Time

Value = Literal["True", "False", "Unknown"]


def condition(status: JobStatus, kind: ConditionType) -> Condition | None:
    """The condition of that type, if it has been set."""
    return next((c for c in status.conditions if c.type == kind), None)


def says(status: JobStatus, kind: ConditionType, *reasons: Reason) -> bool:
    """Whether the condition is there for one of these reasons."""
    found = condition(status, kind)
    return found is not None and found.reason in reasons


def with_condition(
    status: JobStatus, kind: ConditionType, value: Value, reason: Reason, message: str, *, now: Time
) -> JobStatus:
    """The status with that condition; its time moves only when its value does."""
    found = condition(status, kind)
    since = found.last_transition_time if found is not None and found.status == value else now
    made = Condition(type=kind, status=value, reason=reason, message=cut(message), last_transition_time=since)
    if found is None:
        return replace(status, conditions=[*status.conditions, made])
    if found == made:
        return status
    return replace(status, conditions=[made if c is found else c for c in status.conditions])
