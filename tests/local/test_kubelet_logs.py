"""Logs of containers: what was written, by time and by line, while it is written and when it is over."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.node.logs import last_lines
from dtj_operator.local.node.shim import LINE_BYTES
from tests.local.embedded import Embedded, pod


async def test_a_log_is_what_was_written(nodes: Embedded) -> None:
    long = "x" * (2 * LINE_BYTES + 10)
    nodes.create(pod("writes", script=f"printf 'one\\n\\n'; echo two >&2; printf {long}; printf '\\nno end'"))
    await nodes.ended("writes")
    assert await nodes.log("writes") == f"one\n\ntwo\n{long}\nno end"
    assert await nodes.log("writes", tail=1) == "no end"
    assert (await nodes.log("writes", limit_bytes=5)) == "one\n\n"


async def test_lines_have_their_time(nodes: Embedded) -> None:
    nodes.create(pod("timed", script="echo one; sleep 0.2; echo two"))
    await nodes.ended("timed")
    lines = (await nodes.log("timed", timestamps=True)).splitlines()
    assert [line.split(" ")[1] for line in lines] == ["one", "two"]
    from_second = (await nodes.log("timed", since=seconds(lines[1]))).splitlines()
    assert from_second == ["two"]


async def test_a_followed_log_ends_with_its_container(nodes: Embedded, tmp_path: Path) -> None:
    nodes.create(pod("follows", script="echo first; until test -e go; do sleep 0.02; done; echo last"))
    await nodes.says("follows", "first")
    following = asyncio.create_task(nodes.log("follows", follow=True))
    await asyncio.sleep(0)
    (tmp_path / "go").touch()
    assert await following == "first\nlast\n"


async def test_a_pod_whose_name_is_as_long_as_that_of_a_file(nodes: Embedded) -> None:
    name = "a" * 253
    body = pod("long", script="echo here")
    nodes.create({**body, "metadata": {"name": name, "namespace": "default"}})
    await nodes.ended(name)
    assert await nodes.log(name) == "here\n"


@pytest.mark.parametrize(("name", "asked", "told"), [
    ("waits", {}, 'container "main" in pod "waits" is waiting to start: ContainerCreating'),
    ("ended", {"previous": True}, 'previous terminated container "main" in pod "ended" not found'),
])  # fmt: skip
async def test_a_log_that_is_not_there_is_said(nodes: Embedded, name: str, asked: dict[str, Any], told: str) -> None:
    missing = {"volumes": [{"name": "v", "configMap": {"name": "none"}}]}
    mounts = [{"name": "v", "mountPath": "/v"}]
    nodes.create(pod("waits", "true", spec=missing, volumeMounts=mounts))
    nodes.create(pod("ended", "true"))
    await nodes.until_event("waits", "FailedMount")
    await nodes.ended("ended")
    with pytest.raises(ApiFailure) as raised:
        await nodes.log(name, **asked)
    assert str(raised.value) == told


def test_the_last_lines_are_cut_by_number_and_size(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("".join(f"2026-01-01T00:00:00.000000Z F line {n}\n" for n in range(100)))
    assert last_lines(file, 2, 2048) == "line 98\nline 99\n"
    assert last_lines(file, 80, 12) == " 98\nline 99\n"
    assert last_lines(tmp_path / "none", 80, 2048) == ""


def seconds(line: str) -> float:
    return datetime.fromisoformat(line.partition(" ")[0]).timestamp()
