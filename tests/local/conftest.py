"""The embedded cluster that tests of the kubelet share the making of, not the cluster itself."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.local.embedded import Embedded, embedded


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Embedded]:
    """API server, scheduler and kubelet without an operator; programs lie in `tmp_path`."""
    async with embedded(tmp_path) as running:
        yield running
