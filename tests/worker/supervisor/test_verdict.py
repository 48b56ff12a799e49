"""From an end to its Verdict: the child's own, the supervisor's, a peer's; and what is said about it."""

import os
from dataclasses import replace
from typing import Any

import pytest

from dtj_worker.contract import Death
from dtj_worker.supervisor import verdict
from dtj_worker.supervisor.verdict import Ending, Evidence, Exit

TRACEBACK = ["Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "    main()"]
UNAVAILABLE = "UnavailableError: Collective ops is aborted by: Error reported from /job:worker/task:1"


@pytest.mark.parametrize(
    ("evidence", "ending", "kind", "message", "code"),
    [
        pytest.param(Evidence(Exit(0)), None, "Done", "done", 0, id="done"),
        pytest.param(Evidence(Exit(3)), None, "Program", "exited 3", 3, id="another exit code"),
        pytest.param(Evidence(Exit(64)), None, "Program", "exited 64", 64, id="a bare exit code says nothing"),
        pytest.param(Evidence(Exit(42)), None, "Program", "exited 42", 42, id="nobody asked it to save"),
        pytest.param(Evidence(Exit(signal="SIGKILL")), None, "Program", "killed by SIGKILL", 137, id="killed"),
        pytest.param(
            Evidence(Exit(signal="SIGKILL"), out_of_memory=True),
            None,
            "Memory",
            "killed by the kernel: the container is out of memory",
            137,
            id="killed for memory",
        ),
        pytest.param(Evidence(Exit(1), out_of_memory=True), None, "Program", "exited 1", 1, id="a helper was killed"),
        pytest.param(
            Evidence(Exit(1), problem="ResourceExhaustedError: OOM when allocating"),
            None,
            "Memory",
            "ResourceExhaustedError: OOM when allocating",
            1,
            id="the device's memory",
        ),
        pytest.param(
            Evidence(Exit(64), refused="the batch of 100 is not divisible by 3"),
            None,
            "Config",
            "the batch of 100 is not divisible by 3",
            64,
            id="refused",
        ),
        pytest.param(
            Evidence(Exit(1), problem=UNAVAILABLE, has_peers=True), None, "Peer", UNAVAILABLE, 75, id="a collective"
        ),
        pytest.param(Evidence(Exit(1), problem=UNAVAILABLE), None, "Program", UNAVAILABLE, 1, id="no peer to die of"),
        pytest.param(
            Evidence(Exit(signal="SIGKILL")),
            Ending("Peer", "worker-1 killed by SIGKILL", blames="worker-1"),
            "Peer",
            "worker-1 killed by SIGKILL",
            75,
            id="ended for a peer",
        ),
        pytest.param(
            Evidence(Exit(143)), Ending("Stopped", "asked to stop"), "Stopped", "asked to stop", 143, id="stopped"
        ),
        pytest.param(Evidence(Exit(42)), Ending("Stopped", "asked to stop"), "Saved", "asked to stop", 42, id="saved"),
        pytest.param(
            Evidence(Exit(0)), Ending("Stall", "no step"), "Stall", "no step", 1, id="a stall, whatever its exit"
        ),
        pytest.param(
            Evidence(Exit(signal="SIGKILL")),
            Ending("Rendezvous", "not built"),
            "Rendezvous",
            "not built",
            137,
            id="rendezvous",
        ),
        pytest.param(
            Evidence(Exit(signal="SIGTERM")), Ending("Done", "chief is done"), "Done", "chief is done", 0, id="finish"
        ),
    ],
)
def test_a_verdict(evidence: Evidence, ending: Ending | None, kind: str, message: str, code: int) -> None:
    found = verdict.judge("worker-0", 2, evidence, ending)

    assert (found.kind, found.message, verdict.exit_code(found)) == (kind, message, code)
    assert found.by == ("supervisor" if ending else "child")
    assert (found.task, found.attempt) == ("worker-0", 2)
    assert (found.exit_code, found.signal) == (evidence.exit.code, evidence.exit.signal)


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        pytest.param([*TRACEBACK, "ValueError: no"], "ValueError: no", id="an exception"),
        pytest.param([*TRACEBACK, "ValueError: no", "second line", ""], "ValueError: no", id="of several lines"),
        pytest.param(
            [
                *TRACEBACK,
                "KeyError: 'a'",
                "",
                "During handling of the above exception, another exception occurred:",
                "",
                *TRACEBACK,
                "ValueError: no",
            ],
            "ValueError: no",
            id="a chain",
        ),
        pytest.param(
            [*TRACEBACK, "ValueError: no", "Exception ignored in: <function C.__del__>", *TRACEBACK, "TypeError: gone"],
            "ValueError: no",
            id="noise of the clean-up",
        ),
        pytest.param(
            [*TRACEBACK, "ValueError: no", "Exception in thread Thread-1 (watch):", *TRACEBACK, "RuntimeError: closed"],
            "ValueError: no",
            id="noise of a thread",
        ),
        pytest.param(
            [*TRACEBACK, "ValueError: no", "2026-11-30 10:00:00.000001: W tensorflow/core/x.cc:3] Destroying"],
            "ValueError: no",
            id="TensorFlow's last words",
        ),
        pytest.param(
            ["Fatal Python error: Segmentation fault", "", "Current thread 0x1 (most recent call first):"],
            "Fatal Python error: Segmentation fault",
            id="a crash",
        ),
        pytest.param(
            ["terminate called", "2026-11-30 10:00:00.000001: E tensorflow/x.cc:3] noise", ""],
            "exited 1; its last line on stderr: terminate called",
            id="no Python",
        ),
        pytest.param([], "exited 1", id="nothing"),
    ],
)
def test_the_message_is_the_exception(errors: list[str], message: str) -> None:
    assert verdict.judge("worker-0", 0, Evidence(Exit(1), errors=errors), None).message == message


MISSING = "ModuleNotFoundError: No module named 'nosuchmodule'"


@pytest.mark.parametrize(
    ("evidence", "unloadable"),
    [
        pytest.param(Evidence(Exit(1), problem=MISSING), True, id="told by the program"),
        pytest.param(Evidence(Exit(1), errors=[*TRACEBACK, MISSING, ""]), True, id="read from its stderr"),
        pytest.param(
            Evidence(Exit(1), errors=['  File "train.py", line 2', "SyntaxError: invalid syntax"]),
            True,
            id="a script that does not even compile has no traceback",
        ),
        pytest.param(Evidence(Exit(1), problem="ImportError: cannot import name 'a' from 'b'"), True, id="a name"),
        pytest.param(
            Evidence(Exit(1), problem="ImportError: libcuda.so.1: cannot open shared object file"),
            False,
            id="a library may be there on another node",
        ),
        pytest.param(Evidence(Exit(1), problem="ValueError: no"), False, id="any other exception"),
        pytest.param(
            Evidence(Exit(1), errors=[*TRACEBACK, MISSING, "the data server does not answer"]),
            False,
            id="it was caught, and something else ended the program",
        ),
        pytest.param(Evidence(Exit(3), problem=MISSING), False, id="a program that chose its exit code"),
    ],
)
def test_a_program_that_can_not_be_loaded(evidence: Evidence, *, unloadable: bool) -> None:
    found = verdict.judge("worker-0", 0, replace(evidence, is_loading=True), None)

    assert (found.kind, found.unloadable, verdict.death(found).unloadable) == ("Program", unloadable, unloadable)
    assert not verdict.judge("worker-0", 0, evidence, None).unloadable


FIRST = Death("worker-1", "Program", signal="SIGKILL", message="killed by SIGKILL")


@pytest.mark.parametrize(
    ("evidence", "ending", "kind", "blames", "message"),
    [
        pytest.param(
            Evidence(Exit(1), problem="ValueError: no"),
            None,
            "Peer",
            "worker-1",
            "worker-1 killed by SIGKILL; then here: ValueError: no",
            id="an end that may come of it",
        ),
        pytest.param(
            Evidence(Exit(64), refused="no batch"), None, "Config", None, "no batch", id="a fault of one's own"
        ),
        pytest.param(
            Evidence(Exit(1)),
            Ending("Peer", "worker-1: killed", "worker-1"),
            "Peer",
            "worker-1",
            "worker-1: killed",
            id="known",
        ),
        pytest.param(Evidence(Exit(143)), Ending("Stopped", "asked"), "Stopped", None, "asked", id="a request"),
    ],
)
def test_who_died_before(evidence: Evidence, ending: Any, kind: str, blames: str | None, message: str) -> None:
    found = verdict.after(verdict.judge("worker-0", 0, evidence, ending), FIRST)

    assert (found.kind, found.blames, found.message) == (kind, blames, message)


def test_ones_own_death_changes_nothing() -> None:
    own = verdict.judge("worker-1", 0, Evidence(Exit(signal="SIGKILL")), None)

    assert verdict.after(own, FIRST) == own


@pytest.mark.parametrize(
    ("death", "words"),
    [
        (FIRST, "worker-1 killed by SIGKILL"),
        (Death("worker-1", "Program", exit_code=3, message="exited 3"), "worker-1 exited 3"),
        (
            Death("worker-1", "Program", exit_code=2, message="exited 2; its last line on stderr: bad args"),
            "worker-1 exited 2; its last line on stderr: bad args",
        ),
        (Death("worker-1", "Program", exit_code=1, message="ValueError: no"), "worker-1 exited 1: ValueError: no"),
        (Death("worker-1", "Program", message="its supervisor is gone"), "worker-1: its supervisor is gone"),
    ],
)
def test_a_death_as_a_reason(death: Death, words: str) -> None:
    assert verdict.because(death) == words


@pytest.mark.parametrize(
    ("status", "found"),
    [
        (0, Exit(0)),
        (3 << 8, Exit(3)),
        (9, Exit(signal="SIGKILL")),
        (6 | 0x80, Exit(signal="SIGABRT")),
        (40, Exit(signal="signal 40")),
    ],
)
def test_an_exit_from_its_status(status: int, found: Exit) -> None:
    assert Exit.of(status) == found
    assert os.WIFSIGNALED(status) == (found.signal is not None)
