"""Containers as processes: how they start, run, come again and end, and what their pod's status says of it."""

import asyncio
from pathlib import Path

import pytest

from dtj_operator.local.node.podrun import Pace
from tests.local.embedded import Embedded, condition, death, embedded, lives, pod, state

QUICK = Pace(first=0.01, longest=0.05)
STUBBORN = "trap '' TERM; echo ready; while true; do sleep 0.05; done"
POLITE = "trap 'echo asked; exit 7' TERM; echo ready; while true; do sleep 0.05; done"


@pytest.mark.parametrize(("script", "phase", "code", "reason"), [
    pytest.param("exit 0", "Succeeded", 0, "Completed", id="a command that succeeds"),
    pytest.param("exit 3", "Failed", 3, "Error", id="a command that fails"),
    pytest.param("kill -9 $$$$", "Failed", 137, "Error", id="a command that is killed"),
])  # fmt: skip
async def test_the_end_of_a_command_is_the_end_of_its_pod(
    nodes: Embedded, script: str, phase: str, code: int, reason: str
) -> None:
    nodes.create(pod("once", script=script))
    ended = await nodes.ended("once")
    assert ended["status"]["phase"] == phase
    terminated = state(ended)["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (code, reason)
    assert terminated["startedAt"] <= terminated["finishedAt"]
    assert condition(ended, "Ready") | {"lastTransitionTime": ""} == {
        "type": "Ready",
        "status": "False",
        "reason": "PodCompleted" if phase == "Succeeded" else "PodFailed",
        "lastTransitionTime": "",
        "lastProbeTime": None,
    }


@pytest.mark.parametrize(("command", "told"), [
    pytest.param(["nosuch"], 'exec: "nosuch": executable file not found in $PATH', id="a program that is nowhere"),
    pytest.param(["/nowhere/run"], 'exec: "/nowhere/run": stat /nowhere/run: no such file or directory', id="a path"),
    pytest.param(["/etc/passwd"], 'exec: "/etc/passwd": permission denied', id="a file that is no program"),
])  # fmt: skip
async def test_a_command_that_cannot_start_says_why_as_containerd_does(
    nodes: Embedded, command: list[str], told: str
) -> None:
    nodes.create(pod("wrong", *command))
    ended = await nodes.ended("wrong")
    terminated = state(ended)["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (128, "StartError")
    assert terminated["message"].endswith(told)
    assert ("Failed", f"Error: {terminated['message']}") in nodes.events("wrong")


async def test_a_running_pod_is_ready_and_says_where_it_is(nodes: Embedded) -> None:
    nodes.create(pod("runs", "sleep", "1000"))
    running = await nodes.runs("runs")
    assert "running" in state(running)
    held = [
        condition(running, type_)["status"] for type_ in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    assert held == ["True"] * 4
    assert (running["spec"]["nodeName"], running["status"]["podIP"]) == ("local-0", "127.0.0.1")
    reasons = [reason for reason, _ in nodes.events("runs")]
    assert reasons == ["Scheduled", "Created", "Started"]


async def test_nothing_that_a_command_has_started_outlives_it(nodes: Embedded) -> None:
    # In a session of its own, deaf to SIGTERM, its parent gone: only whoever adopted it can find it.
    orphan = "setsid sh -c 'trap \"\" TERM; echo $$$$; exec sleep 1000' &"
    nodes.create(pod("leaves", script=f"{orphan} sleep 0.2; exit 0"))
    await nodes.ended("leaves")
    assert not lives(int(await nodes.log("leaves")))


async def test_a_pod_runs_until_its_last_container_has_ended(nodes: Embedded) -> None:
    second = {"name": "second", "image": "x", "command": ["sleep", "1000"]}
    body = pod("two", script="exit 1")
    body["spec"]["containers"].append(second)
    nodes.create(body)
    half = await nodes.until("two", lambda pod: "terminated" in state(pod) and "running" in state(pod, "second"))
    assert half["status"]["phase"] == "Running"
    assert condition(half, "Ready")["message"] == "containers with unready status: [main]"


async def test_a_container_comes_again_until_it_succeeds(tmp_path: Path) -> None:
    script = "echo try; echo x >> tries; test $(wc -l < tries) = 3"
    async with embedded(tmp_path, pace=QUICK) as nodes:
        nodes.create(pod("again", script=script, spec={"restartPolicy": "OnFailure"}))
        ended = await nodes.ended("again")
        assert ended["status"]["phase"] == "Succeeded"
        [told] = ended["status"]["containerStatuses"]
        assert told["restartCount"] == 2
        assert told["lastState"]["terminated"]["exitCode"] == 1
        assert await nodes.log("again") == await nodes.log("again", previous=True) == "try\n"


async def test_a_container_that_keeps_failing_is_held_back(tmp_path: Path) -> None:
    async with embedded(tmp_path, pace=Pace(first=1000, longest=1000)) as nodes:
        nodes.create(pod("loops", script="exit 1", spec={"restartPolicy": "Always"}))
        held = await nodes.until("loops", lambda pod: state(pod).get("waiting", {}).get("reason") == "CrashLoopBackOff")
        uid = held["metadata"]["uid"]
        told = f"back-off 1000s restarting failed container=main pod=loops_default({uid})"
        assert state(held)["waiting"]["message"] == told
        assert held["status"]["phase"] == "Running"
        assert held["status"]["containerStatuses"][0]["restartCount"] == 1
        assert ("BackOff", f"Back-off restarting failed container main in pod loops_default({uid})") in nodes.events(
            "loops"
        )
        nodes.objects.delete("pods", held["metadata"], grace_seconds=30)
        await nodes.gone("loops")


async def test_init_containers_run_one_after_the_other_before_the_others(nodes: Embedded, tmp_path: Path) -> None:
    def step(name: str) -> dict[str, object]:
        return {"name": name, "image": "x", "command": ["sh", "-c", f"sleep 0.1; echo {name} >> order"]}

    body = pod("steps", script="echo main >> order", spec={"initContainers": [step("one"), step("two")]})
    nodes.create(body)
    waiting = await nodes.until("steps", lambda pod: "running" in state(pod, "one"))
    assert waiting["status"]["phase"] == "Pending"
    assert state(waiting)["waiting"] == {"reason": "PodInitializing"}
    assert condition(waiting, "Initialized")["message"] == "containers with incomplete status: [one two]"
    await nodes.ended("steps")
    assert (tmp_path / "order").read_text().split() == ["one", "two", "main"]


async def test_a_failing_init_container_ends_the_pod(nodes: Embedded, tmp_path: Path) -> None:
    body = pod(
        "stops", script="touch ran", spec={"initContainers": [{"name": "one", "image": "x", "command": ["false"]}]}
    )
    nodes.create(body)
    ended = await nodes.ended("stops")
    assert ended["status"]["phase"] == "Failed"
    assert state(ended, "one")["terminated"]["exitCode"] == 1
    assert not (tmp_path / "ran").exists()


async def test_a_native_sidecar_starts_first_ends_last_and_decides_nothing(nodes: Embedded, tmp_path: Path) -> None:
    script = "echo start >> order; trap 'echo stop >> order; exit 9' TERM; while true; do sleep 0.05; done"
    sidecar = {"name": "side", "image": "x", "restartPolicy": "Always", "command": ["sh", "-c", script]}
    main = "until grep -q start order; do sleep 0.05; done; echo main >> order"
    nodes.create(pod("with", script=main, spec={"initContainers": [sidecar]}))
    ended = await nodes.ended("with")
    assert ended["status"]["phase"] == "Succeeded"
    assert state(ended, "side")["terminated"]["exitCode"] == 9
    assert (tmp_path / "order").read_text().split() == ["start", "main", "stop"]


async def test_a_deleted_pod_has_its_grace(nodes: Embedded) -> None:
    nodes.create(pod("goes", script=POLITE))
    await nodes.says("goes", "ready")
    nodes.objects.delete("pods", nodes.pod("goes")["metadata"], grace_seconds=1000)
    going = await nodes.until("goes", lambda pod: "terminated" in state(pod))
    assert going["metadata"]["deletionGracePeriodSeconds"] == 1000
    assert state(going)["terminated"]["exitCode"] == 7
    await nodes.gone("goes")
    assert ("Killing", "Stopping container main") in nodes.events("goes")


async def test_kubectl_waits_for_a_pod_to_go(nodes: Embedded) -> None:
    nodes.create(pod("goes", script=POLITE))
    await nodes.says("goes", "ready")
    followed = asyncio.create_task(nodes.log("goes", follow=True))
    assert await nodes.kubectl("delete", "pod", "goes") == 'pod "goes" deleted from default namespace\n'
    assert nodes.objects.find("pods", "default", "goes") is None
    assert await followed == "ready\nasked\n"


async def test_a_pod_that_does_not_go_is_killed_after_its_grace(nodes: Embedded) -> None:
    nodes.create(pod("stays", script=STUBBORN))
    await nodes.says("stays", "ready")
    [command, *_] = nodes.cluster.kubelet.processes("default", "stays")
    nodes.objects.delete("pods", nodes.pod("stays")["metadata"], grace_seconds=1)
    ended = await nodes.until("stays", lambda pod: "terminated" in state(pod))
    assert state(ended)["terminated"]["exitCode"] == 137
    await nodes.gone("stays")
    assert not lives(command)


async def test_a_grace_can_be_cut_short(nodes: Embedded) -> None:
    nodes.create(pod("slow", script=STUBBORN))
    await nodes.says("slow", "ready")
    nodes.objects.delete("pods", nodes.pod("slow")["metadata"], grace_seconds=1000)
    nodes.objects.delete("pods", nodes.pod("slow")["metadata"], grace_seconds=1)
    await nodes.gone("slow")


async def test_a_pod_deleted_by_force_is_killed_at_once(nodes: Embedded) -> None:
    nodes.create(pod("forced", script=STUBBORN))
    await nodes.says("forced", "ready")
    [command, *_] = nodes.cluster.kubelet.processes("default", "forced")
    nodes.objects.delete("pods", nodes.pod("forced")["metadata"], grace_seconds=0)
    assert nodes.objects.find("pods", "default", "forced") is None
    await death(command)


async def test_a_pod_has_a_deadline_of_its_own(nodes: Embedded) -> None:
    nodes.create(pod("late", "sleep", "1000", spec={"activeDeadlineSeconds": 1, "terminationGracePeriodSeconds": 1}))
    ended = await nodes.ended("late")
    assert (ended["status"]["phase"], ended["status"]["reason"]) == ("Failed", "DeadlineExceeded")


@pytest.mark.parametrize(("script", "policy", "message"), [
    pytest.param("echo words > $DTJ_TERMINATION_LOG; exit 1", "File", "words\n", id="by the variable"),
    pytest.param("echo words > /dev/termination-log; exit 1", "File", "words\n", id="by the path in the command"),
    pytest.param("echo last words; exit 1", "FallbackToLogsOnError", "last words\n", id="from the log"),
    pytest.param("echo last words", "FallbackToLogsOnError", None, id="not from the log of a success"),
    pytest.param("rm $DTJ_TERMINATION_LOG; exit 1", "File", None, id="none where the file is gone"),
    pytest.param("echo last words; exit 1", "File", None, id="not from the log unless asked for"),
])  # fmt: skip
async def test_a_container_leaves_a_message(nodes: Embedded, script: str, policy: str, message: str | None) -> None:
    nodes.create(pod("speaks", script=script, terminationMessagePolicy=policy))
    ended = await nodes.ended("speaks")
    assert state(ended)["terminated"].get("message") == message


async def test_twenty_pods_at_once(nodes: Embedded) -> None:
    for index in range(20):
        nodes.create(pod(f"many-{index}", script=f"echo {index}"))
    for index in range(20):
        ended = await nodes.ended(f"many-{index}")
        assert ended["status"]["phase"] == "Succeeded"
        assert await nodes.log(f"many-{index}") == f"{index}\n"
