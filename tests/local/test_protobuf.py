"""Bodies in protobuf, as Go's clients write them: what stands in them is what arrives."""

from typing import Any

import pytest

from dtj_operator.local import protobuf


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def body(kind: str, *fields: bytes) -> bytes:
    header = field(1, b"v1") + field(2, kind.encode())
    return b"k8s\x00" + field(1, header) + field(2, b"".join(fields))


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        pytest.param(body("DeleteOptions", field(1, 0)), {"gracePeriodSeconds": 0}, id="at once"),
        pytest.param(body("DeleteOptions"), {}, id="in its own time"),
        pytest.param(body("PriorityClass", field(2, 0)), {"value": 0}, id="no priority"),
        pytest.param(
            body("Service", field(2, field(1, field(1, b"") + field(3, 80) + field(5, 0)))),
            {"spec": {"ports": [{"port": 80}]}},
            id="what Go writes although it is not set",
        ),
    ],
)
def test_a_zero_is_read_where_it_says_something(sent: bytes, read: dict[str, Any]) -> None:
    decoded = protobuf.decode(sent)
    assert {name: value for name, value in decoded.items() if name not in ("apiVersion", "kind")} == read
