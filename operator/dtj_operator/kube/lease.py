"""Which of several operator processes may write: the one that holds a Lease. What it writes is for others to know."""

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Protocol

from dtj_operator.kube.client import LEASE, ApiError, Client, Json

log = logging.getLogger(__name__)

DURATION_SECONDS = 15.0
"""For how long a leader that nobody hears of is taken to be alive."""
RENEWAL_SECONDS = 5.0
POLL_SECONDS = 2.0
SAFETY_SECONDS = 2.0
"""A leader stops writing that much before others may take over; a request under way then still lands in time."""


def boot_time() -> float:
    """Seconds since boot, time suspended included: a laptop or virtual machine that wakes up knows that it slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeaseLost(Exception):
    """Another process may be leading by now. The only right thing is to end without another write."""


class Leader(Protocol):
    """What a writer asks before each write."""

    def check(self) -> None:
        """Raise LeaseLost unless this process is sure to be the leader."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing of an earlier leader can still be under way; forced deletes and gang releases wait for it."""


class Sole:
    """The Leader where nobody else is meant to run: the embedded cluster, simulations."""

    is_settled = True

    def check(self) -> None:
        """Nothing to lose."""


class Lease:
    """One Lease object and our part in it. `seconds` is a clock that never jumps and counts suspension."""

    def __init__(
        self, client: Client, namespace: str, name: str, identity: str, seconds: Callable[[], float] = boot_time
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._seconds = seconds
        self._held: Json | None = None
        self._renewed_at = 0.0
        self._settled_at = 0.0

    @property
    def is_settled(self) -> bool:
        return self._seconds() >= self._settled_at

    def check(self) -> None:
        silent = self._seconds() - self._renewed_at
        if self._held is None or silent > DURATION_SECONDS - SAFETY_SECONDS:
            raise LeaseLost(f"the Lease {self._namespace}/{self._name} was not renewed for {silent:.0f} s")

    async def acquire(self) -> None:
        """Wait until this process is the leader. At once if nobody is, the last one left in order, or it was we."""
        version, seen_at = "", 0.0
        while True:
            asked_at = self._seconds()
            try:
                lease = await self._read()
                holder = lease.get("spec", {}).get("holderIdentity") or ""
                if holder in ("", self._identity):
                    await self._take(lease, asked_at, settles_in=0.0)
                    return
                if version != lease["metadata"]["resourceVersion"]:
                    if not version:
                        log.info("%s holds the Lease; this process waits", holder)
                    version, seen_at = lease["metadata"]["resourceVersion"], asked_at
                elif asked_at - seen_at >= _duration(lease):
                    await self._take(lease, asked_at, settles_in=DURATION_SECONDS)
                    return
            except ApiError as error:
                # Somebody was faster (409), or the API server is away for a moment.
                if not error.is_transient and error.code != HTTPStatus.CONFLICT:
                    raise
                log.warning("the Lease can't be taken yet: %s", error)
            await asyncio.sleep(POLL_SECONDS)

    async def keep(self) -> None:
        """Renew until cancelled; LeaseLost when that failed for too long, or somebody else took it."""
        pause = RENEWAL_SECONDS
        while True:
            await asyncio.sleep(pause)
            # Sooner after a failure: two of the long pauses and a renewal without an answer outlast the Lease.
            pause = POLL_SECONDS
            try:
                async with asyncio.timeout(RENEWAL_SECONDS):
                    await self._renew()
                pause = RENEWAL_SECONDS
            except TimeoutError:
                log.warning("the Lease was not renewed: no answer in time")
            except ApiError as error:
                log.warning("the Lease was not renewed: %s", error)
            self.check()

    async def release(self) -> None:
        """Let the next one start at once. To be called when no write is under way any more."""
        if self._held is not None:
            held, self._held = self._held, None
            try:
                await self._patch(held, {"holderIdentity": "", "leaseDurationSeconds": 1})
            except ApiError as error:
                log.warning("the Lease was not given back, the next leader waits for its end: %s", error)

    async def _read(self) -> Json:
        try:
            return await self._client.get(LEASE, self._namespace, self._name)
        except ApiError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            metadata = {"name": self._name, "namespace": self._namespace}
            return await self._client.create(
                {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata}
            )

    async def _take(self, lease: Json, asked_at: float, settles_in: float) -> None:
        spec = lease.get("spec", {})
        is_new = spec.get("holderIdentity") != self._identity
        self._held = await self._patch(
            lease,
            {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": int(DURATION_SECONDS),
                "acquireTime": _now(),
                "renewTime": _now(),
                "leaseTransitions": spec.get("leaseTransitions", 0) + is_new,
            },
        )
        self._renewed_at = asked_at
        self._settled_at = asked_at + settles_in

    async def _renew(self) -> None:
        assert self._held is not None, "keep() comes after acquire()"
        asked_at = self._seconds()
        try:
            self._held = await self._patch(self._held, {"renewTime": _now()})
        except ApiError as error:
            if error.code != HTTPStatus.CONFLICT:
                raise
            # Somebody touched it, or an earlier renewal was carried out and its answer got lost.
            live = await self._client.get(LEASE, self._namespace, self._name)
            is_ours = live.get("spec", {}).get("holderIdentity") == self._identity
            self._held = live if is_ours else None
            if not is_ours:
                raise LeaseLost(f"another process took the Lease {self._namespace}/{self._name}") from error
            asked_at = self._seconds()
            self._held = await self._patch(live, {"renewTime": _now()})
        self._renewed_at = asked_at

    async def _patch(self, lease: Json, spec: Json) -> Json:
        version = {"resourceVersion": lease["metadata"]["resourceVersion"]}
        return await self._client.patch(LEASE, self._namespace, self._name, {"metadata": version, "spec": spec})


def _duration(lease: Json) -> float:
    return float(lease.get("spec", {}).get("leaseDurationSeconds") or DURATION_SECONDS)


def _now() -> str:
    """Kubernetes' MicroTime; for people and other implementations, we ourselves only watch whether it changes."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
