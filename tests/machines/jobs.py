"""Jobs that machines submit: small ones, each of which ends by itself, with as many policies as matter to recovery."""

from tests.worlds.world import Json, counting

NEVER_READY = ["idle.py"]
"""A program that SimWorld does not know: its supervisor never registers."""


def jobs(name: str) -> dict[str, Json]:
    """Manifests by what is special about them."""
    return {
        "plain": counting(name, steps=25),
        "alone": counting(name, workers=1, steps=25),
        "killed once": counting(name, steps=25, fault="worker:1@step=12"),
        "fails always": counting(name, steps=15, arguments=("--exit-code=3",), recovery={"maxRestarts": 1}),
        "short-lived": counting(name, steps=15, ttlSecondsAfterFinished=5),
        "evaluated": counting(name, steps=15, roles={"evaluator": {}}),
        "all workers": counting(name, steps=15, successPolicy="AllWorkers", cleanPodPolicy="All"),
        "keeps pods": counting(name, steps=15, fault="worker:0@step=5:exit=3", cleanPodPolicy="None", keepFailedPods=2),
        "ungated": counting(name, steps=25, gang={"scheduler": "None"}),
        "bounded": counting(name, steps=25, trainer={"args": NEVER_READY}, activeDeadlineSeconds=120),
        "parameter servers": counting(name, steps=15, strategy="ParameterServer", roles={"chief": {}, "ps": {}}),
        "wants GPUs": counting(
            name, steps=15, trainer={"resources": {"limits": {"nvidia.com/gpu": "3"}}}, gang={"timeoutSeconds": 60}
        ),
    }
