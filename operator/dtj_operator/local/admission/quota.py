"""ResourceQuota: what would exceed one is refused, and each quota's status says what is used.

How much an object uses is `usage.py`'s.
"""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dtj_operator.local import quantity
from dtj_operator.local.admission import usage
from dtj_operator.local.admission.usage import Amounts
from dtj_operator.local.failures import refused
from dtj_operator.local.kinds import Kind
from dtj_operator.local.quantity import value_of
from dtj_operator.local.store import Change

if TYPE_CHECKING:
    from dtj_operator.local.state import State

Json = dict[str, Any]

STORAGE = "resourcequotas"
# A quota on these makes every pod say how much it wants.
_MUST_BE_SAID = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")


class QuotaLedger:
    """What is used in each namespace that has a quota, kept up to date by the store's changes."""

    def __init__(self, state: "State") -> None:
        self._state = state
        self._used: dict[str, Amounts] = {}
        state.store.listen(self._changed)

    def check(self, kind: Kind, body: Json) -> None:
        """403 for a create that would pass a quota's limit, or that doesn't say what a quota must know."""
        namespace, name = body["metadata"].get("namespace", ""), body["metadata"].get("name", "")
        wanted: Amounts | None = None
        for entry in self._state.store.entries(STORAGE, namespace) if namespace else ():
            if wanted is None:
                wanted = usage.used_by(kind, body)
            limits = entry.decode().get("spec", {}).get("hard") or {}
            if kind.storage == "pods":
                _must_say(kind, name, entry.name, limits, body["spec"])
            used = self._used.get(namespace, {})
            over = [
                key for key in sorted(limits)
                if wanted.get(key, 0) > 0 and used.get(key, Fraction(0)) + wanted[key] > value_of(limits[key])
            ]  # fmt: skip
            if over:
                told = (
                    f"exceeded quota: {entry.name}, requested: {_shown(over, wanted, limits)}, "
                    f"used: {_shown(over, used, limits)}, limited: {','.join(f'{key}={limits[key]}' for key in over)}"
                )
                raise refused(kind.resource, name, told)

    def _changed(self, change: Change) -> None:
        namespace = change.entry.namespace
        if change.storage == STORAGE:
            self._quota_changed(change, namespace)
            return
        if namespace not in self._used:
            return
        kind = self._state.kinds.of_storage(change.storage)
        before = usage.used_by(kind, change.previous.decode()) if change.previous else {}
        after = usage.used_by(kind, change.entry.decode()) if change.type != "DELETED" else {}
        if before != after:
            self._used[namespace] = usage.add(usage.add(self._used[namespace], before, -1), after)
            self._write_statuses(namespace)

    def _quota_changed(self, change: Change, namespace: str) -> None:
        if change.type == "DELETED":
            if not self._state.store.count(STORAGE, namespace):
                self._used.pop(namespace, None)
            return
        if change.type == "ADDED":
            self._used[namespace] = self._counted(namespace)
        body = change.entry.decode()
        if self._status(body, namespace) != body.get("status"):
            self._write_statuses(namespace)

    def _counted(self, namespace: str) -> Amounts:
        total: Amounts = {}
        for storage in self._state.store.storages():
            kind = self._state.kinds.of_storage(storage)
            if kind.namespaced:
                for entry in self._state.store.entries(storage, namespace):
                    total = usage.add(total, usage.used_by(kind, entry.decode()))
        return total

    def _status(self, body: Json, namespace: str) -> Json:
        hard = (body.get("spec") or {}).get("hard") or {}
        used = self._used.get(namespace, {})
        return {"hard": hard, "used": {key: _text(used.get(key, Fraction(0)), hard[key]) for key in hard}}

    def _write_statuses(self, namespace: str) -> None:
        kind = self._state.kinds.of_storage(STORAGE)
        for entry in list(self._state.store.entries(STORAGE, namespace)):
            body = entry.decode()
            status = self._status(body, namespace)
            if body.get("status") != status:
                self._state.write(kind, {**body, "status": status})


def _must_say(kind: Kind, name: str, quota: str, limits: Json, spec: Json) -> None:
    missing: dict[str, list[str]] = {}
    for key in sorted(limits):
        if key not in _MUST_BE_SAID:
            continue
        field, _, resource = key.rpartition(".")
        for container in spec.get("containers") or []:
            amounts = (container.get("resources") or {}).get(field or "requests") or {}
            if resource not in amounts:
                missing.setdefault(key, []).append(container["name"])
    if missing:
        listed = "; ".join(f"{key} for: {','.join(names)}" for key, names in missing.items())
        raise refused(kind.resource, name, f"failed quota: {quota}: must specify {listed}")


def _shown(keys: list[str], amounts: Amounts, limits: Json) -> str:
    return ",".join(f"{key}={_text(amounts.get(key, Fraction(0)), limits[key])}" for key in keys)


def _text(value: Fraction, like: str) -> str:
    return quantity.text_of(value, like)
