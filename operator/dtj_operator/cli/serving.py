"""Work on an embedded cluster of this process: signals end it in order, and what keeps it from starting is told."""

import asyncio
import signal
from collections.abc import Awaitable, Callable

from dtj_operator.cli.outcome import NO_CLUSTER, Ended, ended_by
from dtj_operator.local.cluster import ClusterFailed
from dtj_operator.local.deployment import OperatorFailed
from dtj_operator.local.node.ports import NoPorts
from dtj_operator.local.process import NoIsolation


def within_signals(work: Callable[[], Awaitable[int]]) -> int:
    """Run it; Ctrl-C and SIGTERM end it as an error would, so that it cleans up behind itself."""

    async def main() -> int:
        task = asyncio.current_task()
        assert task is not None
        caught: list[int] = []

        def stop(number: int) -> None:
            # A second one changes nothing: what is left to do is quick, and must be done.
            if not caught:
                caught.append(number)
                task.cancel()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, stop, number)
        try:
            return await work()
        except asyncio.CancelledError:
            if not caught:
                raise
            return ended_by(caught[0])
        except (ClusterFailed, OperatorFailed, NoIsolation, NoPorts, OSError) as problem:
            raise Ended(NO_CLUSTER, [f"the embedded cluster can't run here: {problem}"]) from None

    return asyncio.run(main())
