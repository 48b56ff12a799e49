"""A gang of supervisors: all start together, one death ends all, and every verdict names who began it."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dtj_worker import folders
from dtj_worker.codec import decode, encode
from dtj_worker.contract import CheckpointPlan, Fault, Limits
from dtj_worker.supervisor.peers import Join, Order, cluster_of
from tests.worker.supervisor.gang import COUNTER, TOKEN, WITHIN, Gang, is_alive, until

MakeGang = Callable[..., Gang]
PROGRAMS = Path(__file__).parent / "programs"
ENDLESS = (COUNTER, "--steps", "1000000", "--step-seconds", "0.05")


def test_two_workers_succeed(gang: MakeGang, tmp_path: Path) -> None:
    job = gang("worker-0", "worker-1", checkpoint=CheckpointPlan(str(tmp_path / "checkpoints")))
    first, second = job.start_all(COUNTER, "--steps", "30")

    statuses = list(job.statuses())

    assert statuses[-1].stage == "Done"
    assert (statuses[-1].step, statuses[-1].epochs, statuses[-1].checkpoint_step) == (30, 3, 30)
    assert statuses[-1].strategy == "MultiWorkerMirroredStrategy"
    assert statuses[-1].replicas == 2
    assert statuses[-1].first_death is None
    assert (first.end(), second.end()) == (0, 0)
    assert first.verdict.kind == second.verdict.kind == "Done"
    assert second.verdict.step == 30
    assert (first.verdict.checkpoint_step, first.verdict.checkpoint_epoch) == (30, 3)


def test_no_program_starts_before_all_have_registered(gang: MakeGang) -> None:
    job = gang("worker-0", "worker-1", "worker-2")
    job.start("worker-0", *ENDLESS)
    job.start("worker-1", *ENDLESS)
    status = job.status_when(lambda s: s.tasks["worker-1"] == "Registered")

    assert status.stage == "Waiting"
    assert status.tasks == {"worker-0": "Registered", "worker-1": "Registered", "worker-2": "Waiting"}

    job.start("worker-2", *ENDLESS)
    assert job.status_when(lambda s: s.stage == "Training").step


@pytest.mark.parametrize(("victim", "other"), [("worker-1", "worker-0"), ("worker-0", "worker-1")])
def test_a_killed_program_ends_the_gang(gang: MakeGang, victim: str, other: str) -> None:
    job = gang("worker-0", "worker-1")
    job.start_all(*ENDLESS)
    job.status_when(lambda s: s.stage == "Training" and s.tasks["worker-1"] == "Training")

    os.kill(job.trainers[victim].child, signal.SIGKILL)

    assert job.trainers[victim].end() == 137
    assert job.trainers[other].end() == 75
    guilty, innocent = job.trainers[victim].verdict, job.trainers[other].verdict
    assert (guilty.kind, guilty.by, guilty.signal, guilty.message) == (
        "Program",
        "child",
        "SIGKILL",
        "killed by SIGKILL",
    )
    assert guilty.step
    assert (innocent.kind, innocent.blames) == ("Peer", victim)
    assert innocent.message == f"{victim} killed by SIGKILL"


@pytest.mark.parametrize(("victim", "other"), [("worker-1", "worker-0"), ("worker-0", "worker-1")])
def test_a_killed_supervisor_ends_the_gang_and_its_own_program(gang: MakeGang, victim: str, other: str) -> None:
    job = gang("worker-0", "worker-1")
    job.start_all(*ENDLESS)
    job.status_when(lambda s: s.stage == "Training" and s.tasks["worker-1"] == "Training")
    orphan = job.trainers[victim].child

    job.trainers[victim].process.send_signal(signal.SIGKILL)

    assert job.trainers[other].end() == 75
    found = job.trainers[other].verdict
    assert (found.kind, found.blames) == ("Peer", victim)
    assert found.message.startswith(f"{victim}: its supervisor is gone: ")
    until(lambda: not is_alive(orphan), "the program dies with its supervisor")


def test_all_hear_of_a_death_before_the_chief_has_ended_its_own(gang: MakeGang) -> None:
    job = gang("worker-0", "worker-1", "worker-2", faults={"worker-2": Fault(step=3, exit_code=3)})
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    chief = job.start("worker-0", "--", sys.executable, "-c", deaf)
    other = job.start("worker-1", *ENDLESS)
    job.start("worker-2", *ENDLESS)

    assert other.end() == 75
    assert chief.process.poll() is None
    assert chief.end() == 75
    assert chief.verdict.signal == "SIGKILL"


def test_the_first_death_is_told_to_the_operator(gang: MakeGang) -> None:
    job = gang("worker-0", "worker-1", faults={"worker-1": Fault(step=3, exit_code=3)})
    first, second = job.start_all(*ENDLESS)

    death = job.status_when(lambda s: s.first_death).first_death

    assert death is not None
    assert (death.task, death.kind, death.exit_code, death.step) == ("worker-1", "Program", 3, 3)
    assert (first.end(), second.end()) == (75, 3)
    assert second.verdict.exit_code == 3


@pytest.mark.parametrize("injected", ["1", "0"], ids=["told by the program", "read from its stderr"])
def test_the_exception_of_the_program_is_the_message(gang: MakeGang, injected: str) -> None:
    job = gang("worker-0", environ={"DTJ_INJECT": injected})
    trainer = job.start("worker-0", "--", sys.executable, "-c", "raise ValueError('too many\\nvalues')")

    assert trainer.end() == 1
    assert trainer.verdict.message.startswith("ValueError: too many")


STRATEGY = "from dtj_worker.training.report import Reporter as R; R.from_environment().constructing('S'); "


@pytest.mark.parametrize("injected", ["1", "0"], ids=["told by the program", "read from its stderr"])
@pytest.mark.parametrize(
    ("words", "unloadable"),
    [
        pytest.param([sys.executable, "-c", "import nosuchmodule"], True, id="a missing module"),
        pytest.param([sys.executable, "-c", "a b"], True, id="no Python at all"),
        pytest.param([sys.executable, "-c", f"{STRATEGY}import nosuchmodule"], False, id="after the strategy"),
        pytest.param(["sh", "-c", f"{sys.executable} -c 'import nosuchmodule'"], False, id="a shell's may heal"),
    ],
)
def test_a_program_that_can_not_be_loaded_is_told(
    gang: MakeGang, injected: str, words: list[str], *, unloadable: bool
) -> None:
    trainer = gang("worker-0", environ={"DTJ_INJECT": injected}).start("worker-0", "--", *words)

    assert trainer.end() == 1
    assert (trainer.verdict.kind, trainer.verdict.unloadable) == ("Program", unloadable), trainer.verdict


def test_an_exception_that_ends_no_program_ends_it_all_the_same(gang: MakeGang) -> None:
    held = "import threading, time\nthreading.Thread(target=lambda: time.sleep(600)).start()\nraise ValueError('no')"
    job = gang("worker-0", limits=Limits(grace_seconds=1))
    trainer = job.start("worker-0", "--", sys.executable, "-c", held)

    assert trainer.end() == 137
    assert trainer.verdict.kind == "Program"
    assert trainer.verdict.message == (
        "ValueError: no; it has not ended within 1 s of that: a thread or process holds it"
    )
    assert "most recent call first" in trainer.log


def test_sigterm_ends_the_gang_unsaved(gang: MakeGang) -> None:
    job = gang("worker-0", "worker-1", faults={"worker-1": Fault(step=3, signal="SIGTERM")})
    first, second = job.start_all(*ENDLESS)

    assert (first.end(), second.end()) == (75, 143)
    assert second.verdict.kind == "Stopped"
    assert second.verdict.message == "asked to stop; unsaved"
    assert (first.verdict.kind, first.verdict.blames) == ("Peer", "worker-1")


def test_a_program_that_swallows_sigterm_is_killed_after_its_grace(gang: MakeGang) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    )
    job = gang("worker-0", limits=Limits(grace_seconds=1))
    trainer = job.start("worker-0", "--", sys.executable, "-c", deaf)
    until(lambda: "deaf" in trainer.log, "the program runs")

    trainer.process.send_signal(signal.SIGTERM)

    assert trainer.end() == 143
    assert (trainer.verdict.kind, trainer.verdict.signal) == ("Stopped", "SIGKILL")


def test_a_second_sigterm_waits_no_longer(gang: MakeGang) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, lambda *_: print('no', flush=True))\n"
        "print('deaf', flush=True)\n"
        "while True: time.sleep(1)"
    )
    job = gang("worker-0", limits=Limits(grace_seconds=600))
    trainer = job.start("worker-0", "--", sys.executable, "-c", deaf)
    until(lambda: "deaf" in trainer.log, "the program runs")
    trainer.process.send_signal(signal.SIGTERM)
    until(lambda: "no" in trainer.log, "the program was asked")

    trainer.process.send_signal(signal.SIGTERM)

    assert trainer.end() == 143
    assert trainer.verdict.kind == "Stopped"


def test_sigterm_before_the_start(gang: MakeGang) -> None:
    job = gang("worker-0", "worker-1")
    trainer = job.start("worker-0", *ENDLESS)
    job.status_when(lambda s: s.tasks["worker-0"] == "Registered")

    trainer.process.send_signal(signal.SIGTERM)

    assert trainer.end() == 143
    assert (trainer.verdict.kind, trainer.verdict.exit_code, trainer.verdict.by) == ("Stopped", None, "supervisor")


def test_a_program_that_saves_on_sigterm_by_itself(gang: MakeGang) -> None:
    saving = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(42))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(1)"
    )
    job = gang("worker-0")
    trainer = job.start("worker-0", "--", sys.executable, "-c", saving)
    until(lambda: "ready" in trainer.log, "the program runs")

    trainer.process.send_signal(signal.SIGTERM)

    assert trainer.end() == 42
    assert trainer.verdict.kind == "Saved"


def test_a_restart_goes_on_at_the_last_checkpoint(gang: MakeGang, tmp_path: Path) -> None:
    plan = CheckpointPlan(str(tmp_path / "checkpoints"))
    job = gang("worker-0", "worker-1", checkpoint=plan, faults={"worker-1": Fault(step=25, signal="SIGKILL")})
    job.start_all(COUNTER, "--steps", "40")
    assert job.trainers["worker-1"].end() == 137
    job.trainers["worker-0"].end()
    # Not what it last told: it may have been ended between a step and the save of that step.
    saved = folders.copies(folders.run_folder(plan, job.uid))[0].manifest.step

    again = job.next_attempt()
    first, second = again.start_all(COUNTER, "--steps", "40")

    status = list(again.statuses())[-1]
    assert (first.end(), second.end()) == (0, 0)
    assert (status.resumed_from_step, status.resumed_from_epoch) == (saved, saved // 10)
    assert f"resuming from step {saved} of attempt 0" in first.log
    assert f"resumed after step {saved}" in first.log
    assert f"resumed after step {saved}" in second.log
    again.end()


def test_a_missing_peer_is_named(gang: MakeGang) -> None:
    job = gang("worker-0", "worker-1", "worker-2", limits=Limits(registration_seconds=5))
    first, second = job.start("worker-0", *ENDLESS), job.start("worker-1", *ENDLESS)

    assert (first.end(), second.end()) == (1, 75)
    assert (first.verdict.kind, second.verdict.kind) == ("Rendezvous", "Peer")
    assert second.verdict.blames == "worker-2"
    assert first.verdict.message == (
        "2 of 3 tasks registered within 5 s; missing: worker-2 (127.0.0.1: its pod answers, but no supervisor "
        "registered; is dtj-worker its entry point?)"
    )


def test_a_chief_that_is_not_there_is_named(gang: MakeGang) -> None:
    job = gang("worker-0", "worker-1", limits=Limits(registration_seconds=1))
    trainer = job.start("worker-1", *ENDLESS)

    assert trainer.end() == 1
    assert trainer.verdict.kind == "Rendezvous"
    where = job.spec("worker-0").chief_status
    assert (
        trainer.verdict.message == f"could not register with worker-0 ({where}) within 1 s: it refused the connection"
    )


def test_a_wrong_token_does_not_register(gang: MakeGang) -> None:
    job = gang("worker-0", "worker-1", limits=Limits(registration_seconds=3))
    trainer = job.start("worker-1", *ENDLESS, environ={"DTJ_TOKEN": "of another job"})
    job.limits = Limits()
    job.start("worker-0", *ENDLESS)

    assert trainer.end() == 1
    assert "it refused: the job's token is needed" in trainer.verdict.message
    assert job.status_when(lambda s: True).tasks["worker-1"] == "Waiting"


@pytest.mark.parametrize(
    ("task", "why"),
    [
        ("worker-2", "worker-2 is no peer of worker-0 among this job's 2 tasks"),
        ("worker-1", "worker-1 and worker-0 disagree on the job's tasks and addresses"),
    ],
)
def test_tasks_that_disagree_on_the_cluster(gang: MakeGang, task: str, why: str) -> None:
    job, other = gang("worker-0", "worker-1"), gang("worker-0", "worker-1", "worker-2")
    other.ports |= job.ports
    job.start("worker-0", *ENDLESS)
    trainer = other.start(task, *ENDLESS)

    assert trainer.end() == 64
    assert trainer.verdict.kind == "Config"
    assert why in trainer.verdict.message


def test_a_chief_that_is_still_checking_gives_signs_of_life(gang: MakeGang) -> None:
    job = gang("worker-0", "worker-1")
    spec = job.spec("worker-1")
    with socket.create_server(("127.0.0.1", job.ports["worker-0"])):  # What it has to wait for.
        job.start("worker-0", *ENDLESS)
        host, _, port = spec.chief_status.rpartition(":")
        peer = until(lambda: connected(host, int(port)), "the chief listens")
        body = encode(Join(spec.uid, spec.task, spec.attempt, cluster_of(spec)))
        head = f"POST /v1/join HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {len(body)}\r\n\r\n"
        with peer, peer.makefile("rb") as lines:
            peer.sendall((head + body).encode())
            while lines.readline() != b"\r\n":
                pass
            assert decode(Order, lines.readline()).kind == "Beat"


def test_the_gang_does_not_wait_for_a_disk_to_note_its_end(gang: MakeGang, tmp_path: Path) -> None:
    runs = tmp_path / "checkpoints" / "job.json"
    job = gang("worker-0", "worker-1", checkpoint=CheckpointPlan(str(runs.parent)))
    first, _ = job.start_all(COUNTER, "--steps", "40")
    for status in job.statuses():
        if status.stage == "Training" and runs.is_file():
            runs.unlink()
            os.mkfifo(runs.with_name("pipe"))  # Whoever reads it waits for a writer, as for a dead disk.
            runs.with_name("pipe").rename(runs)

    assert status.stage == "Done"
    assert first.process.poll() is None
    runs.write_text('{"runs": []}')
    assert first.end() == 0
    assert first.verdict.kind == "Done"


def test_a_supervisor_of_another_attempt_does_not_register(gang: MakeGang) -> None:
    job = gang("worker-0", "worker-1")
    job.start("worker-0", *ENDLESS)
    job.status_when(lambda s: s.tasks["worker-0"] == "Registered")
    late = job.next_attempt(limits=Limits(registration_seconds=3))
    late.ports = job.ports
    trainer = late.start("worker-1", *ENDLESS)

    assert trainer.end() == 1
    assert "it refused: worker-1 is of attempt 1, this is attempt 0" in trainer.verdict.message
    late.end()


def test_a_rendezvous_that_holds_the_gil_is_ended_with_its_stacks(gang: MakeGang) -> None:
    job = gang("worker-0", "worker-1", limits=Limits(rendezvous_seconds=1))
    first, second = job.start_all(str(PROGRAMS / "hang.py"))

    assert {first.end(), second.end()} <= {137, 75}
    guilty = first if first.verdict.kind == "Rendezvous" else second
    assert guilty.verdict.kind == "Rendezvous"
    assert guilty.verdict.message.startswith(
        "MultiWorkerMirroredStrategy was not built within 1 s; 0 of 1 peers listen; "
    )
    assert "it refused the connection; is its program listening on another port" in guilty.verdict.message
    assert "hang.py" in guilty.log
    assert "most recent call first" in guilty.log


def test_a_busy_peer_holds_the_others_rendezvous(gang: MakeGang) -> None:
    job = gang("worker-0", "worker-1", limits=Limits(rendezvous_seconds=4))
    first, second = job.start_all(str(PROGRAMS / "busy.py"), "7")

    assert (first.end(), second.end()) == (0, 0), job.logs()


def test_a_rendezvous_without_a_busy_peer_is_not_held(gang: MakeGang) -> None:
    job = gang("worker-0", limits=Limits(rendezvous_seconds=1))
    trainer = job.start("worker-0", str(PROGRAMS / "busy.py"), "30")

    assert trainer.end() == 137
    assert trainer.verdict.kind == "Rendezvous"


def test_no_step_after_some_is_a_stall_everywhere(gang: MakeGang) -> None:
    job = gang("worker-0", "worker-1", limits=Limits(stall_seconds=2))
    job.start_all(str(PROGRAMS / "silent.py"))

    for trainer in job.trainers.values():
        assert trainer.end() in (137, 75)
        assert "wait_for_a_batch_that_never_comes" in trainer.log
    stalled = [t.verdict for t in job.trainers.values() if t.verdict.kind == "Stall"]
    assert stalled[0].message == "no step for 2 s, after step 1"


def test_no_first_step_is_warned_of_then_ended(gang: MakeGang) -> None:
    job = gang("worker-0", limits=Limits(first_step_seconds=4))
    trainer = job.start("worker-0", str(PROGRAMS / "silent.py"), "first")

    assert trainer.end() == 137
    assert trainer.verdict.kind == "Stall"
    assert trainer.verdict.message == "no first step within 4 s after the strategy was built"
    assert "no first step for 2 s, of 4 s that it may take; its stacks follow" in trainer.log
    assert trainer.log.count("wait_for_a_batch_that_never_comes\n") >= 2


def test_a_program_that_never_comes_to_its_strategy(gang: MakeGang) -> None:
    job = gang("worker-0", "worker-1", limits=Limits(program_seconds=2))
    first, second = job.start_all("--", "sleep", "600")

    assert {first.end(), second.end()} <= {137, 75}
    stalled = next(t.verdict for t in (first, second) if t.verdict.kind == "Stall")
    assert stalled.message == "no strategy was created within 2 s of the program's start"


def test_parameter_servers_end_with_the_chief(gang: MakeGang) -> None:
    job = gang("chief-0", "worker-0", "ps-0", strategy="ParameterServer")
    job.start("worker-0", str(PROGRAMS / "server.py"))
    job.start("ps-0", str(PROGRAMS / "server.py"))
    job.start("chief-0", COUNTER, "--steps", "20")

    assert [job.trainers[task].end() for task in job.tasks] == [0, 0, 0]
    assert job.trainers["ps-0"].verdict.kind == "Done"
    assert job.trainers["ps-0"].verdict.message == "chief-0 is done"


def test_parameter_server_training_outlives_a_worker(gang: MakeGang) -> None:
    job = gang("chief-0", "worker-0", "ps-0", strategy="ParameterServer")
    for task in ("worker-0", "ps-0"):
        job.start(task, str(PROGRAMS / "server.py"))
    job.start("chief-0", *ENDLESS)
    job.status_when(lambda s: s.stage == "Training")

    os.kill(job.trainers["worker-0"].child, signal.SIGKILL)

    assert job.trainers["worker-0"].end() == 137
    status = job.status_when(lambda s: s.tasks["worker-0"] == "Dead")
    assert status.first_death is None
    os.kill(job.trainers["ps-0"].child, signal.SIGKILL)
    assert job.trainers["chief-0"].end() == 75
    assert job.trainers["chief-0"].verdict.blames == "ps-0"


def test_the_evaluator_starts_alone(gang: MakeGang) -> None:
    job = gang("worker-0", "evaluator-0")
    trainer = job.start("evaluator-0", "--", sys.executable, "-c", "import os; print(os.environ['TF_CONFIG'])")

    assert trainer.end() == 0
    assert '"type": "evaluator"' in trainer.log


def test_each_attempt_has_ports_of_its_own(gang: MakeGang) -> None:
    job = gang("worker-0", attempt=11)
    trainer = job.start("worker-0", "--", sys.executable, "-c", "import os; print(os.environ['TF_CONFIG'])")

    assert trainer.end() == 0
    assert f"127.0.0.1:{job.ports['worker-0'] + 3}" in trainer.log


def test_a_supervisor_stays_small(gang: MakeGang) -> None:
    job = gang("worker-0", "worker-1")
    job.start_all(*ENDLESS)
    job.status_when(lambda s: s.stage == "Training")

    status = Path(f"/proc/{job.trainers['worker-0'].process.pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))

    assert resident < 25 * 1024


def connected(host: str, port: int) -> socket.socket | None:
    with contextlib.suppress(ConnectionError):
        return socket.create_connection((host, port), timeout=WITHIN)
    return None


def test_an_unsupervised_laptop(tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text("import sys; print('hello', *sys.argv[1:])")
    command = [sys.executable, "-m", "dtj_worker.supervisor.main", "hello.py", "you"]
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("DTJ_", "TF_CONFIG"))}

    done = subprocess.run(command, cwd=tmp_path, env=bare, capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode == 0
    assert done.stdout == "hello you\n"
    assert "DTJ_TASK is not set, so this runs as a single process" in done.stderr
