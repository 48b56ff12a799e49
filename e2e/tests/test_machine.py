"""A run and the machine it runs on: what it says, waits for, leaves behind. None of this needs the cluster."""

import dataclasses
import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e import buildah, commands, images, machine
from e2e.__main__ import check
from e2e.cgroups import Cgroups, hierarchies, own
from e2e.daemon import Daemon, wait
from e2e.machine import ROOT
from e2e.survey import Survey

NOBODY = 1 << 22
"""One more than the largest number of a process."""
pytestmark = pytest.mark.machine


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs have their folders, in a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "dtj" / "run"


@pytest.fixture
def planted() -> Iterator[list[Path]]:
    """cgroups, one as a build makes them; some in those of this process, which need not be at the top."""
    top = next(path for path in hierarchies() if path.name == "pids")
    made = [top / "left", *(place / "buildah-left" for place in own())]
    yield made
    for path in made:
        if path.exists():
            path.rmdir()


def test_what_is_left_on_a_machine_is_noticed(tmp_path: Path, planted: list[Path]) -> None:
    before = Survey.now()
    for command in (
        ["mount", "-t", "tmpfs", "tmpfs", str(tmp_path)],
        ["ip", "address", "add", "10.89.77.1/32", "dev", "lo"],
        ["nft", "add", "table", "ip", "left"],
        ["sysctl", "-qw", "net.ipv4.ip_forward=0"],
    ):
        subprocess.run(command, check=True)
    for path in planted:
        path.mkdir()
    process = subprocess.Popen(["sleep", "60"], env={"OF": "/run/of-that-run/x"})
    try:
        said = list(before.differences(Survey.now(), "of-that-run"))
    finally:
        process.kill()
        process.wait()
        for command in (
            ["sysctl", "-qw", "net.ipv4.ip_forward=1"],
            ["nft", "delete", "table", "ip", "left"],
            ["ip", "address", "delete", "10.89.77.1/32", "dev", "lo"],
            ["umount", str(tmp_path)],
        ):
            subprocess.run(command, check=True)
    for kind in ("mounts: .* is new", "addresses: .*10.89.77.1.* is new", "firewall: .*left.* is new"):
        assert any(re.match(kind, line) for line in said), (kind, said)
    assert "sysctls: net.ipv4.ip_forward = 0 is new" in said
    assert {f"cgroups: {path} is new" for path in planted} <= {*said}
    assert f"process {process.pid} (sleep 60 OF=/run/of-that-run/x ) still runs" in said


def test_a_survey_of_what_did_not_change_is_empty() -> None:
    before = Survey.now()
    assert {field.name for field in dataclasses.fields(before)} > {"mounts", "addresses", "firewall", "sysctls"}
    assert not [line for line in before.differences(Survey.now(), "no-such-run") if line.startswith("sysctls")]


def test_what_others_do_on_a_machine_is_no_difference() -> None:
    """A login, a container of Docker, a module of the kernel."""
    nothing = Survey(*(frozenset[str]() for _ in dataclasses.fields(Survey)))
    with_module = dataclasses.replace(nothing, sysctls=frozenset({"net.bridge.bridge-nf-call-iptables = 1"}))
    assert list(nothing.differences(with_module, "no-such-run")) == []
    before = Survey.now()
    link, place = "vetha1b2c3d", Path("/run/user/4321")
    session = next(path for path in hierarchies() if path.name == "pids") / "user-4321.slice"
    commands.run("ip", "link", "add", link, "type", "veth", "peer", "name", "vethd4e5f6a")
    place.mkdir(parents=True)
    commands.run("mount", "-t", "tmpfs", "tmpfs", str(place))
    session.mkdir()
    try:
        said = list(before.differences(Survey.now(), "no-such-run"))
    finally:
        session.rmdir()
        commands.run("umount", str(place))
        place.rmdir()
        commands.run("ip", "link", "delete", link)
    # In a run, /run is another folder as well, where the mount is seen again.
    assert not [line for line in said if re.search(r"veth(a1b2|d4e5)|user-4321| /run/user/", line)]


def test_a_run_that_leaves_something_ends_with_1(runs: Path, planted: list[Path]) -> None:
    place, said = runs / "dtj-e2e-0", list[str]()

    def work() -> int:
        assert place.is_dir()
        planted[0].mkdir()
        return 0

    assert machine.watched(place, work, said.append, Survey.now()) == 1
    assert f"the machine is not as it was: cgroups: {planted[0]} is new" in said
    assert not place.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_told_to_end_tidies_up(runs: Path, number: signal.Signals) -> None:
    before, place = signal.getsignal(number), runs / "dtj-e2e-0"

    def work() -> int:
        signal.raise_signal(number)
        raise AssertionError("it goes on")

    with pytest.raises(SystemExit) as ended:
        machine.watched(place, work, print, Survey.now())
    assert ended.value.code == 128 + number
    assert signal.getsignal(number) is before
    assert not place.exists()


def test_runs_that_are_over_are_known_by_their_locks(runs: Path) -> None:
    killed, going, starting, of_old = (runs / f"dtj-e2e-{number}" for number in (1, 2, os.getpid(), NOBODY))
    for place in (killed, going, starting, of_old):
        place.mkdir(parents=True)
    (killed / machine.LOCK).touch()
    with (going / machine.LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        over = [place.name for place in (killed, going, starting, of_old) if machine.is_over(place.name)]
        assert over == [killed.name, of_old.name]
        assert {*over} <= {*machine.stale()}
        with machine.occupied(runs / "dtj-e2e-3"):
            assert {path.name for path in runs.iterdir()} == {going.name, starting.name, "dtj-e2e-3"}
            assert not machine.is_over("dtj-e2e-3")


def test_no_run_that_is_over_is_joined(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    left = runs / "dtj-e2e-1"
    left.mkdir(parents=True)
    (left / machine.LOCK).touch()
    (left / machine.OUTER).write_text(str(os.getpid()))
    with pytest.raises(RuntimeError, match="no cluster is up"):
        machine.join(["true"])


def test_cgroups_that_come_and_go_disturb_nobody() -> None:
    ours, ended = Cgroups(f"left-{os.getpid()}"), threading.Event()
    ours.create()

    def churn() -> None:
        while not ended.is_set():
            ours.create("a/b/c")
            ours.remove("a")

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(2000):
            assert ours.processes(within="/c") == []
    finally:
        ended.set()
        thread.join()
        ours.remove()


def test_a_program_that_cannot_enter_its_cgroup_does_not_start(tmp_path: Path) -> None:
    daemon = Daemon(
        "lost", ["touch", tmp_path / "started"], tmp_path / "log", cgroup=tmp_path / "none" / "cgroup.procs"
    )
    daemon.start()
    with pytest.raises(RuntimeError, match=r"(?s)lost ended with 2; .*none/cgroup.procs"):
        wait("it goes on", lambda: False, 60, daemon)
    assert not (tmp_path / "started").exists()


def test_an_image_is_the_same_whatever_the_umask_of_the_clone(runs: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    (clone / "folder").mkdir(parents=True, mode=0o700)
    for name, mode in (("folder/text", 0o600), ("folder/program", 0o700)):
        (clone / name).touch()
        (clone / name).chmod(mode)
    umask = os.umask(0o077)
    try:
        with buildah.staged(clone, [clone / "folder" / "text", clone / "folder" / "program"]) as context:
            found = {path.name: oct(path.stat().st_mode)[-3:] for path in context.rglob("*")}
    finally:
        os.umask(umask)
    assert found == {"folder": "755", "text": "644", "program": "755"}


def test_where_no_network_is_a_missing_image_is_told_at_once(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(machine.FOLDER, str(tmp_path))
    with pytest.raises(RuntimeError, match=r"dtj/foreign:latest: not built .* start with --image=dtj/foreign:latest$"):
        images.archives(["dtj/foreign:latest"])


def test_an_image_that_nobody_can_make_is_told_before_anything_is_built(tmp_path: Path) -> None:
    file = tmp_path / "archive.tar"
    file.touch()
    check(["dtj/digits:latest", str(file)])
    with pytest.raises(RuntimeError, match=r"dtj/digit:latest: no such file, and no such image; .*dtj/digits:latest"):
        check(["dtj/digits:latest", "dtj/digit:latest"])


def test_a_command_that_fails_or_hangs_is_named() -> None:
    with pytest.raises(RuntimeError, match="sh -c 'echo no; exit 3' ended with 3: no"):
        commands.run("sh", "-c", "echo no; exit 3")
    with pytest.raises(TimeoutError, match="sleep 60 has not ended after 0 s"):
        commands.run("sleep", "60", seconds=0.1)


def test_a_command_ends_with_whoever_waits_for_it(tmp_path: Path) -> None:
    told = f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/number; exec sleep 600"
    waiting = subprocess.Popen([sys.executable, "-c", f"from e2e import commands; commands.run('sh', '-c', {told!r})"])
    wait("it runs", (tmp_path / "number").exists, 60)
    number = int((tmp_path / "number").read_text())
    waiting.kill()
    waiting.wait()
    wait("it has ended", lambda: not Path(f"/proc/{number}").exists() or is_dead(number), 60)


def is_dead(number: int) -> bool:
    return "\nState:\tZ" in Path(f"/proc/{number}/status").read_text()


def test_ctrl_c_leaves_a_command_its_time(tmp_path: Path) -> None:
    command = (
        f"trap 'sleep 1; touch {tmp_path}/tidied; exit 2' INT; touch {tmp_path}/there; while :; do sleep 0.1; done"
    )
    # As on a terminal, whatever this process was started to ignore.
    program = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); from e2e import commands; "
    program += f"sys.exit(commands.foreground(['sh', '-c', {command!r}]))"
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, start_new_session=True)
    wait("it runs", (tmp_path / "there").exists, 60)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert process.wait(60) == 128 + signal.SIGINT
    assert (tmp_path / "tidied").exists()
