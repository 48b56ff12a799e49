"""How a status stays under its size: long messages are cut, and of lists the newest entries stay.

What decisions read (rounds, starts, counters) is never cut: were it lost, a pod's name could be used twice. So a job
of which 300 tasks were restarted alone, each by itself, is the largest that is sure to fit.
"""

import msgspec
from msgspec.structs import replace

from dtj_operator.api.status import JobStatus

STATUS_BYTES = 16 * 1024
"""As JSON without white space."""
MESSAGE_BYTES = 1024
ATTEMPTS = 20
NODES = 16
CORDONED = 8
"""Of one drain: where more nodes are cordoned within minutes, nobody counts them any more."""
_SHORTEST_MESSAGE_BYTES = 64


def bounded(status: JobStatus) -> JobStatus:
    """The status within its bounds, unchanged where it is within them already. Applying it twice changes nothing."""
    message_bytes, attempts = MESSAGE_BYTES, ATTEMPTS
    status = _cut(status, message_bytes, attempts)
    if len(msgspec.json.encode(status)) > STATUS_BYTES and status.recovery.left_nodes:
        # Costs a restart more, at the worst: nothing knows any longer which drain there is to wait for.
        status = replace(status, recovery=replace(status.recovery, left_nodes=[], cordoned=[]))
    while len(msgspec.json.encode(status)) > STATUS_BYTES and attempts > 1:
        # Messages first: their beginnings say the most. Then the past.
        if message_bytes > _SHORTEST_MESSAGE_BYTES:
            message_bytes //= 2
        else:
            attempts //= 2
        status = _cut(status, message_bytes, attempts)
    return status


def cut(text: str, most_bytes: int = MESSAGE_BYTES) -> str:
    """The text, or as much of its beginning as fits with a mark behind it."""
    encoded = text.encode()
    if len(encoded) <= most_bytes:
        return text
    mark = "…"
    return encoded[: most_bytes - len(mark.encode())].decode(errors="ignore") + mark


def _cut(status: JobStatus, message_bytes: int, attempts: int) -> JobStatus:
    def short(text: str) -> str:
        return cut(text, message_bytes)

    past, failure, gang = status.recovery, status.last_failure, status.gang
    return replace(
        status,
        reason=status.reason and short(status.reason),
        strategy_reason=status.strategy_reason and short(status.strategy_reason),
        conditions=[replace(c, message=short(c.message)) for c in status.conditions],
        last_failure=failure and replace(failure, message=short(failure.message)),
        gang=replace(gang, waiting_for=gang.waiting_for and short(gang.waiting_for)),
        recovery=replace(
            past,
            signature_nodes=past.signature_nodes[-NODES:],
            excluded_nodes=past.excluded_nodes[-NODES:],
            node_failures=dict(list(past.node_failures.items())[-NODES:]),
            left_nodes=past.left_nodes[:NODES],
            cordoned=past.cordoned[:CORDONED],
        ),
        timeline=status.timeline[-attempts:],
    )
