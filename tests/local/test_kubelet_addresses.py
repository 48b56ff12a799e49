"""Where names and ports of pods lie on this machine: one place for all who ask, never where an older pod listens."""

import socket
from collections.abc import Iterator

import pytest

from dtj_operator.local.api import Api
from dtj_operator.local.node.addresses import Addresses, Host
from dtj_operator.local.node.ports import HIGHEST, LOWEST, SLOT, NoPorts, Ports, is_free
from dtj_operator.local.objects import Objects
from tests.local.embedded import pod

NAME = "j-worker-0.peers.default.svc.cluster.local"
HOST = Host("default", "peers", "j-worker-0")


@pytest.fixture
async def objects() -> Objects:
    objects = Objects(Api(), "test")
    ports = [{"name": f"p{port}", "port": port} for port in (*range(2222, 2230), 2280)]
    service = {"clusterIP": "None", "selector": {"job": "j"}, "ports": ports}
    objects.create("services", {"metadata": {"name": "peers", "namespace": "default"}, "spec": service})
    objects.create("services", {"metadata": {"name": "web", "namespace": "default"}, "spec": {"ports": [{"port": 80}]}})
    return objects


@pytest.fixture
def addresses(objects: Objects) -> Iterator[Addresses]:
    addresses = Addresses(objects, Ports(is_private=False))
    yield addresses
    addresses.close()


def uid(objects: Objects, name: str) -> str:
    return str(objects.create("pods", pod(name, "true"))["metadata"]["uid"])


def port(addresses: Addresses, user: str, number: int = 2222) -> int:
    found = addresses.address(HOST, number, user)
    assert found is not None
    return int(found.partition(":")[2])


@pytest.mark.parametrize("text", [
    f"{NAME}:2222", f"grpc://{NAME}:2222/x", f'{{"worker":["{NAME}:2222","x"]}}', "j-worker-0.peers:2222",
    "j-worker-0.peers.default:2222", "j-worker-0.peers.default.svc:2222",
])  # fmt: skip
async def test_names_of_pods_are_found_in_words(addresses: Addresses, text: str) -> None:
    here = addresses.address(HOST, 2222, "me")
    rewritten = addresses.rewritten(text, "default", "me")
    assert here is not None
    assert here in rewritten
    assert "peers" not in rewritten


@pytest.mark.parametrize("text", [
    NAME, "example.com:443", "x.web.default.svc.cluster.local:80", "j-worker-0.peers.other.svc:2222", "10.0.0.1:2222",
    "see j-worker-0.peers: it", "",
])  # fmt: skip
async def test_other_words_stay(addresses: Addresses, text: str) -> None:
    assert addresses.rewritten(text, "default", "me") == text


async def test_ports_in_a_row_stay_in_a_row(addresses: Addresses) -> None:
    first = port(addresses, "me", 2222)
    assert [port(addresses, "me", 2222 + k) for k in range(8)] == [first + k for k in range(8)]
    assert port(addresses, "me", 2280) not in range(first, first + 8)


async def test_a_new_pod_of_a_task_keeps_its_address(addresses: Addresses, objects: Objects) -> None:
    old, peer, new = uid(objects, "old"), uid(objects, "peer"), uid(objects, "new")
    before = port(addresses, peer)
    addresses.claim(HOST, old)
    addresses.release(old)
    addresses.claim(HOST, new)
    assert port(addresses, new) == port(addresses, peer) == before


async def test_a_new_round_goes_elsewhere_when_the_port_was_taken_meanwhile(addresses: Addresses) -> None:
    before = port(addresses, "old")
    addresses.release("old")
    with socket.socket() as other:
        other.bind(("", before))
        other.listen()
        after = port(addresses, "new")
    assert after not in range(before, before + 8)


async def test_no_pod_gets_the_port_of_one_that_still_listens(addresses: Addresses, objects: Objects) -> None:
    zombie, new = uid(objects, "zombie"), uid(objects, "new")
    before = port(addresses, zombie)
    addresses.claim(HOST, zombie)
    # Deleted by force, while its node doesn't answer: its process lives on.
    objects.delete("pods", {"namespace": "default", "name": "zombie", "uid": zombie})
    after = port(addresses, "a peer of the new round")
    assert after not in range(before, before + 8)
    addresses.claim(HOST, new)
    assert port(addresses, new) == after


async def test_two_clusters_of_a_machine_share_no_port(objects: Objects) -> None:
    first, second = (Addresses(objects, Ports(is_private=False)) for _ in range(2))
    try:
        taken = {port(first, "me", 2222), port(first, "me", 2280)}
        assert taken.isdisjoint({port(second, "me", 2222), port(second, "me", 2280)})
    finally:
        first.close()
        second.close()


def test_ports_are_free_and_below_those_of_outgoing_connections() -> None:
    ports = Ports(is_private=False)
    slot = ports.slot()
    try:
        first = slot.take(8)
        assert first is not None
        assert LOWEST < first < HIGHEST
        assert all(is_free(number) for number in range(first, first + 8))
        assert slot.take(SLOT) is None
    finally:
        ports.release(slot)


def test_no_ports_left_is_said() -> None:
    ports = Ports(is_private=True)
    count = (HIGHEST - LOWEST) // SLOT
    slots = [ports.slot() for _ in range(count)]
    assert len({slot.base for slot in slots}) == count
    with pytest.raises(NoPorts):
        ports.slot()
    ports.release(slots[5])
    assert ports.slot().base == slots[5].base
