"""`dtj local`: the embedded cluster for as long as it is wanted, for kubectl and all else that takes a kubeconfig."""

import asyncio
import os

from dtj_operator.cli.serving import within_signals
from dtj_operator.local.cluster import Options, cluster


def local(options: Options) -> int:
    """Runs until Ctrl-C or SIGTERM; the exit code is that of either."""
    return within_signals(lambda: _serve(options))


async def _serve(options: Options) -> int:
    async with cluster(options, _say) as running:
        for line in running.lines:
            _say(line)
        _say(f"programs are looked for in {options.folder}")
        _say("")
        _say(f"  export KUBECONFIG={running.kubeconfig}")
        _say("  kubectl apply -f job.yaml; kubectl get dtj --watch; dtj logs -f NAME")
        _say("")
        _say(f"ready; Ctrl-C ends it with all that runs in it (process {os.getpid()})")
        # Nothing else ends it.
        await asyncio.Event().wait()
    return 0


def _say(sentence: str) -> None:
    print(sentence, flush=True)
