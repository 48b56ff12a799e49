"""The data of Secrets and ConfigMaps: what base64 is taken, how it is stored, and how much of it."""

import base64
from typing import Any

import pytest

from tests.local.calls import Calls, refused

Json = dict[str, Any]

LIMIT = 1024 * 1024


def secret(**data: str) -> Json:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": data}


def binary(**data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "binaryData": data}


def encoded(size: int) -> str:
    return base64.b64encode(bytes(size)).decode()


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("YWJj", "YWJj"),
        ("YW\nJj\r\n", "YWJj"),
        ("YQ\n==", "YQ=="),
        ("YR==", "YQ=="),
        ("", ""),
        ("\n", ""),
    ],
)
def test_base64_is_stored_in_one_line(given: str, stored: str) -> None:
    assert Calls().create(secret(k=given))["data"] == {"k": stored}
    assert Calls().create(binary(k=given))["binaryData"] == {"k": stored}


@pytest.mark.parametrize("given", ["a", "YQ=", "YWJj=", "YQ==YQ==", "Y Q==", "é", "====", "YWJj\t"])
def test_what_is_no_base64_is_a_bad_request(given: str) -> None:
    for manifest in (secret(k=given), binary(k=given)):
        failure = refused(Calls().create, manifest)
        assert failure.code == 400
        assert "illegal base64 data at input byte" in str(failure)


@pytest.mark.parametrize(
    ("sizes", "fits"),
    [
        ((LIMIT,), True),
        ((LIMIT + 1,), False),
        ((LIMIT - 1,), True),
        ((1, LIMIT - 1), True),
        ((1, LIMIT), False),
    ],
)
def test_what_counts_is_what_the_base64_stands_for(sizes: tuple[int, ...], fits: bool) -> None:
    data = {f"k{index}": encoded(size) for index, size in enumerate(sizes)}
    for manifest in (secret(**data), binary(**data)):
        if fits:
            Calls().create(manifest)
        else:
            assert "Too long: may not be more than 1048576 bytes" in str(refused(Calls().create, manifest))
