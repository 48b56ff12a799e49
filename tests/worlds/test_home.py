"""Scenarios make their namespace on a real cluster, find it again, and leave one alone that is somebody else's."""

import asyncio
from pathlib import Path

import pytest

from e2e.kubectl import Kubectl
from tests.local.embedded import embedded
from tests.worlds import home
from tests.worlds.world import NAMESPACE


async def test_a_namespace_is_made_and_found_again(tmp_path: Path) -> None:
    async with embedded(tmp_path) as there:
        kubectl = Kubectl(there.cluster.kubeconfig)
        for _ in range(2):
            await asyncio.to_thread(home.take, kubectl)
        assert await asyncio.to_thread(kubectl, "get", "namespaces", f"--selector={home.LABEL}", "--output=name") == (
            f"namespace/{NAMESPACE}\n"
        )


async def test_a_namespace_of_somebody_else_is_refused(tmp_path: Path) -> None:
    async with embedded(tmp_path) as there:
        there.objects.create("namespaces", {"metadata": {"name": NAMESPACE}})
        with pytest.raises(RuntimeError, match=rf"kubectl label namespace {NAMESPACE} {home.LABEL}="):
            await asyncio.to_thread(home.take, Kubectl(there.cluster.kubeconfig))
