"""The supervisor's loop where the system refuses what it asks for."""

import threading

import pytest

from dtj_worker.supervisor.loop import Loop


def test_a_thread_that_can_not_be_had_is_an_error_of_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    loop, results = Loop(), list[object]()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    loop.in_thread(lambda: "done", results.append)
    loop.wait()
    loop.close()

    (found,) = results
    assert isinstance(found, OSError)
    assert found.strerror == "can't start new thread"
