"""How programs of the cluster are built beside its tests: by a stand-in for Go, which never ends by itself."""

import os
import time
from pathlib import Path

import pytest

from e2e import programs

PATIENCE_SECONDS = 60
GO = """#!/bin/sh
[ "$1" = env ] && echo go1.26 && exit
echo $$ > "$STARTED.new" && mv "$STARTED.new" "$STARTED"
exec sleep 600
"""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file that names the compiler's process, once there is one."""
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text(GO)
    go.chmod(0o700)
    monkeypatch.setenv("PATH", f"{go.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("STARTED", str(tmp_path / "started"))
    return tmp_path / "started"


def test_what_is_built_beside_ends_with_what_it_is_beside(started: Path) -> None:
    said: list[str] = []
    with programs.beside("pause", said.append):
        until = time.monotonic() + PATIENCE_SECONDS
        while not started.exists():
            assert time.monotonic() < until, "Go was never started"
            time.sleep(0.01)
        compiler = int(started.read_text())
        assert os.getpriority(os.PRIO_PROCESS, compiler) == 19
    assert said == ["building pause beside, for later"]
    assert not Path("/proc", str(compiler)).exists()
    left = [path.name for path in (programs.cache() / "programs").iterdir() if path.is_dir()]
    assert left == [], "nothing half made"


def test_what_is_built_already_is_not_built_beside(started: Path) -> None:
    source = programs.FAMILIES / "pause"
    Path(programs.cache(), "programs", f"pause-{programs.digest(source)}").mkdir(parents=True)
    said: list[str] = []
    with programs.beside("pause", said.append):
        assert not started.exists()
    assert said == []
