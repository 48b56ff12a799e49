"""Where pods go: filters, packing, and the words for what is missing."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtj_operator.api.observed import NodeView
from dtj_operator.gang.demand import Demand, Load
from dtj_operator.gang.filtering import mismatch
from dtj_operator.gang.packing import capacity, rooms_of
from dtj_operator.gang.placement import place
from dtj_operator.gang.shortfall import Shortfall
from tests.gang.nodes import GPU, needs, node, taken

HOST = "kubernetes.io/hostname"


def term(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def requiring(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


@pytest.mark.parametrize(
    ("fields", "spec", "words"),
    [
        pytest.param({}, {}, None, id="nothing against it"),
        pytest.param({"ready": False}, {}, "not ready", id="not ready"),
        pytest.param({"unschedulable": True}, {}, "cordoned", id="cordoned"),
        pytest.param({"taints": (("a", "b", "NoSchedule"),)}, {}, "tainted a=b:NoSchedule", id="a taint"),
        pytest.param({"taints": (("a", "", "NoExecute"),)}, {}, "tainted a:NoExecute", id="a taint without a value"),
        pytest.param({"taints": (("a", "b", "PreferNoSchedule"),)}, {}, None, id="a taint that only prefers"),
        pytest.param(
            {"taints": (("node.kubernetes.io/disk-pressure", "", "NoSchedule"),)},
            {},
            "tainted node.kubernetes.io/disk-pressure",
            id="the node's own taint",
        ),
        pytest.param(
            {"taints": (("a", "b", "NoSchedule"),)},
            {"tolerations": [{"key": "a", "value": "b", "effect": "NoSchedule"}]},
            None,
            id="tolerated by its value",
        ),
        pytest.param(
            {"taints": (("a", "b", "NoSchedule"),)},
            {"tolerations": [{"key": "a", "value": "c"}]},
            "tainted a=b:NoSchedule",
            id="not by another",
        ),
        pytest.param(
            {"taints": (("a", "b", "NoSchedule"),)},
            {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}]},
            "tainted a=b:NoSchedule",
            id="not for another effect",
        ),
        pytest.param(
            {"taints": (("a", "b", "NoSchedule"),)}, {"tolerations": [{"operator": "Exists"}]}, None, id="tolerates all"
        ),
        pytest.param(
            {}, {"nodeSelector": {"disk": "ssd"}}, "outside the pods' node selector or affinity", id="selector"
        ),
        pytest.param({"labels": {"disk": "ssd"}}, {"nodeSelector": {"disk": "ssd"}}, None, id="selected"),
        pytest.param({}, {"affinity": requiring(term(HOST, "In", "n1", "n2"))}, None, id="in"),
        pytest.param(
            {},
            {"affinity": requiring(term(HOST, "NotIn", "n1"))},
            "outside the pods' node selector or affinity",
            id="not in",
        ),
        pytest.param({}, {"affinity": requiring(term("x", "NotIn", "n1"))}, None, id="an absent label is not in"),
        pytest.param(
            {}, {"affinity": requiring(term("x", "Exists"), term(HOST, "Exists"))}, None, id="terms are alternatives"
        ),
        pytest.param(
            {}, {"affinity": requiring({})}, "outside the pods' node selector or affinity", id="an empty term"
        ),
        pytest.param({}, {"affinity": requiring(term("x", "DoesNotExist"))}, None, id="does not exist"),
        pytest.param({"labels": {"cpus": "8"}}, {"affinity": requiring(term("cpus", "Gt", "7"))}, None, id="greater"),
        pytest.param(
            {"labels": {"cpus": "8"}},
            {"affinity": requiring(term("cpus", "Lt", "8"))},
            "outside the pods' node selector or affinity",
            id="not less",
        ),
    ],
)
def test_filter(fields: dict[str, Any], spec: dict[str, Any], words: str | None) -> None:
    fault = mismatch(needs(**spec), node("n1", **fields))
    assert (fault.words if fault else None) == words


def test_a_node_to_avoid_is_out_by_its_name() -> None:
    assert mismatch(needs(), node("n1"), avoid=["n1"]) is not None
    assert mismatch(needs(), node("n1"), avoid=["n2"]) is None


def workers(count: int, demand: Demand) -> dict[str, Demand]:
    return {f"worker-{i}": demand for i in range(count)}


@pytest.mark.parametrize(
    ("pods", "nodes", "loads", "used"),
    [
        pytest.param(
            workers(4, needs(1)), [node("n1", 4), node("n2", 8)], [], "n1 n1 n1 n1", id="one node, the tighter"
        ),
        pytest.param(workers(4, needs(2)), [node("n1", 4), node("n2", 4)], [], "n1 n1 n2 n2", id="over two nodes"),
        pytest.param(
            workers(2, needs(2)),
            [node("n1", 4), node("n2", 4)],
            [taken("n1", 2)],
            "n2 n2",
            id="together where they can be",
        ),
        pytest.param(
            workers(2, needs()), [node("a", 8), node("b")], [], "b b", id="no GPU node for those who need none"
        ),
        pytest.param(
            {"chief-0": needs(4), **workers(2, needs(2))},
            [node("n1", 4), node("n2", 4)],
            [],
            "n1 n2 n2",
            id="the large one first",
        ),
        pytest.param(
            workers(2, needs(hostNetwork=True)) | {"ps-0": needs()},
            [node("n1"), node("n2")],
            [],
            "n1 n1 n1",
            id="the host's network without ports",
        ),
    ],
)
def test_place(pods: dict[str, Demand], nodes: list[NodeView], loads: list[Load], used: str) -> None:
    found = place(pods, nodes, loads)
    assert isinstance(found, dict)
    assert " ".join(found[pod] for pod in sorted(found)) == used


def test_a_mixture_that_greed_would_miss_is_found() -> None:
    pods = {"chief-0": needs(3), **workers(2, needs(2))}
    assert place(pods, [node("n1", 4), node("n2", 3)], []) == {"chief-0": "n2", "worker-0": "n1", "worker-1": "n1"}


PORT: dict[str, Any] = {"containers": [{"name": "trainer", "ports": [{"hostPort": 2222}]}]}
MEMORY: dict[str, Any] = {"containers": [{"name": "trainer", "resources": {"requests": {"memory": "24Gi"}}}]}
CPUS: dict[str, Any] = {"containers": [{"name": "trainer", "resources": {"requests": {"cpu": "6", "memory": "24Gi"}}}]}


@pytest.mark.parametrize(
    ("pods", "nodes", "loads", "waiting", "never"),
    [
        pytest.param(
            workers(1, needs(8)),
            [node("n1", 8), node("n3", 8)],
            [taken("n1", 6), taken("n3", 4)],
            "waiting for 8 × nvidia.com/gpu on one node: the freest has 4 (n3)",
            None,
            id="one pod, and the freest node",
        ),
        pytest.param(
            workers(2, needs(5)),
            [node("n1", 4), node("n2", 2)],
            [],
            "waiting for 5 × nvidia.com/gpu on one node: the freest has 4 (n1)",
            "can never fit: 5 × nvidia.com/gpu per pod, largest node has 4",
            id="larger than any node",
        ),
        pytest.param(
            workers(4, needs(1)),
            [node("n1", 4), node("n2", 2)],
            [taken("n1", 2), taken("n2", 1)],
            "waiting for 4 pods with 1 × nvidia.com/gpu each: there is room for 3 now (n1: 2, n2: 1)",
            None,
            id="some of them would fit",
        ),
        pytest.param(
            workers(8, needs(1)),
            [node("n1", 4), node("n2", 2)],
            [],
            "waiting for 8 pods with 1 × nvidia.com/gpu each: there is room for 6 now (n1: 4, n2: 2)",
            "can never fit: 8 pods with 1 × nvidia.com/gpu each, and all nodes together hold 6",
            id="more than all nodes hold",
        ),
        pytest.param(
            workers(1, needs(**MEMORY)),
            [node("n1")],
            [taken("n1", memory=20 * 2**30)],
            "waiting for 24 GiB of memory on one node: the freest has 12 GiB (n1)",
            None,
            id="memory in words",
        ),
        pytest.param(
            workers(1, needs(**CPUS)),
            [node("n1"), node("n2")],
            [taken("n1", cpu=4.0), taken("n2", memory=16 * 2**30)],
            "waiting for 6 × cpu and 24 GiB of memory on one node: none has all of that free",
            None,
            id="each resource is somewhere, together nowhere",
        ),
        pytest.param(
            workers(2, needs(**PORT)),
            [node("n1"), node("n2")],
            [Load("n1", {}, frozenset({("TCP", 2222)}))],
            "waiting for 2 pods: there is room for 1 now (n2: 1)",
            None,
            id="host ports",
        ),
        pytest.param(
            workers(1, needs(**PORT)),
            [node("n1")],
            [Load("n1", {}, frozenset({("TCP", 2222)}))],
            "waiting for host port 2222/TCP on one node: it is taken on each that has room",
            None,
            id="a host port that is taken everywhere",
        ),
        pytest.param(
            workers(1, needs()),
            [node("n1", unschedulable=True), node("n2", ready=False), node("n3", unschedulable=True)],
            [],
            "waiting for a node for these pods: 2 nodes are cordoned, 1 node is not ready",
            None,
            id="no node is open",
        ),
        pytest.param(
            workers(1, needs(nodeSelector={"disk": "ssd"})),
            [node("n1"), node("n2", taints=(("a", "b", "NoSchedule"),), labels={"disk": "ssd"})],
            [],
            "waiting for a node for these pods: 1 node is outside the pods' node selector or affinity, "
            "1 node is tainted a=b:NoSchedule",
            "can never fit: 1 node is outside the pods' node selector or affinity, 1 node is tainted a=b:NoSchedule",
            id="no node is for these pods",
        ),
        pytest.param(
            workers(1, needs()),
            [],
            [],
            "waiting for a node for these pods: the cluster has no node",
            "can never fit: the cluster has no node",
            id="no node at all",
        ),
        pytest.param(
            workers(1, needs()),
            [node("n1", allocatable={"pods": 3.0})],
            [taken("n1"), taken("n1"), taken("n1")],
            "waiting for a pod's place on one node: the freest has 0 (n1)",
            None,
            id="a node full of pods",
        ),
        pytest.param(
            workers(1, needs(4)) | {"ps-0": needs(4)} | {"chief-0": needs(2)},
            [node("n1", 8), node("n2", 1)],
            [],
            "waiting for the whole gang: there is room for each role alone, not for all of them together",
            None,
            id="each role alone",
        ),
    ],
)
def test_shortfall(
    pods: dict[str, Demand], nodes: list[NodeView], loads: list[Load], waiting: str, never: str | None
) -> None:
    assert place(pods, nodes, loads) == Shortfall(waiting, never)


AMOUNTS = st.integers(0, 3).map(float)
SHAPES = st.builds(
    lambda gpus, cpu, ports, selector: Demand(
        requests={"pods": 1.0, GPU: gpus, "cpu": cpu}, host_ports=frozenset(ports), selector=selector
    ),
    AMOUNTS,
    st.sampled_from([0.0, 0.1, 0.2, 1.0]),
    st.sampled_from([(), (), (("TCP", 1),)]),
    st.sampled_from([{}, {}, {"zone": "a"}]),
)
NODES = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from([0.3, 1.0, 2.0]), st.sampled_from(["a", "b"]), st.booleans()),
    max_size=4,
).map(
    lambda those: [
        node(f"n{i}", float(gpus), cpu=cpu, labels={"zone": zone}, unschedulable=cordoned)
        for i, (gpus, cpu, zone, cordoned) in enumerate(those)
    ]
)
FLEETS = NODES.flatmap(
    lambda nodes: st.tuples(
        st.just(nodes),
        st.lists(
            st.builds(
                lambda name, gpus, cpu: Load(name, {"pods": 1.0, GPU: gpus, "cpu": cpu}),
                st.sampled_from([n.name for n in nodes] or ["gone"]),
                st.sampled_from([0.0, 1.0]),
                st.sampled_from([0.0, 0.1]),
            ),
            max_size=3,
        ),
    )
)


def fit_together(pods: dict[str, Demand], chosen: dict[str, str], nodes: list[NodeView], loads: list[Load]) -> bool:
    """Whether every pod may be on its node and no node gives more than it has."""
    rooms = {room.node.name: room for room in rooms_of(nodes, loads)}
    for pod, name in chosen.items():
        room, demand = rooms[name], pods[pod]
        if mismatch(demand, room.node) is not None or not room.capacity(demand):
            return False
        room.take(demand.requests, demand.host_ports)
    return True


@given(fleet=FLEETS, shapes=st.lists(SHAPES, min_size=1, max_size=3), counts=st.lists(st.integers(1, 2), max_size=3))
def test_a_placement_never_overcommits_and_no_means_that_there_is_none(
    fleet: tuple[list[NodeView], list[Load]], shapes: list[Demand], counts: list[int]
) -> None:
    nodes, loads = fleet
    pods = {f"{kind}-{i}": shape for kind, shape in enumerate(shapes) for i in range([*counts, 1, 1, 1][kind])}
    found = place(pods, nodes, loads)
    if isinstance(found, dict):
        assert found.keys() == pods.keys()
        assert fit_together(pods, found, nodes, loads)
        return
    names = [n.name for n in nodes]
    ways = (dict(zip(pods, way, strict=True)) for way in product(names, repeat=len(pods)))
    assert not any(fit_together(pods, way, nodes, loads) for way in ways)
    if found.never is not None:
        open_again = [NodeView(name=n.name, labels=n.labels, allocatable=n.allocatable) for n in nodes]
        ways = (dict(zip(pods, way, strict=True)) for way in product(names, repeat=len(pods)))
        assert not any(fit_together(pods, way, open_again, []) for way in ways)


def test_decimal_fractions_add_up() -> None:
    tenth = Demand(requests={"cpu": 0.1, "pods": 1.0})
    assert isinstance(place(workers(3, tenth), [node("n1", cpu=0.3)], []), dict)
    assert isinstance(place(workers(4, tenth), [node("n1", cpu=0.3)], []), Shortfall)
    assert capacity(tenth, {"cpu": 0.7000000000000001, "pods": 9.0}) == 7


def test_the_largest_gang_finds_its_place_in_a_large_cluster() -> None:
    nodes = [node(f"n{i}", 8.0) for i in range(1000)]
    found = place(workers(512, needs(8)) | {"ps-0": needs(1), "chief-0": needs(4)}, nodes, [])
    assert isinstance(found, dict)
    assert len(set(found.values())) == 513


def test_a_task_that_no_node_may_take_ends_the_search() -> None:
    nodes = [node(f"n{i}", 8.0) for i in range(30)]
    elsewhere = needs(nodeSelector={"pool": "none"})
    found = place(workers(16, needs(1)) | {"chief-0": elsewhere}, nodes, [])
    assert isinstance(found, Shortfall)
    assert found.never == "can never fit: 30 nodes are outside the pods' node selector or affinity"
