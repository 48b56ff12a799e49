"""What to change about a fleet that can never hold a job: the operator's words, and the options that help."""

import pytest

from dtj_operator.cli import fleet


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("can never fit: 1 × nvidia.com/gpu per pod, largest node has 0", "--gpus 1 --nodes 4 gives each pod its own"),
        (
            "can never fit: 4 pods with 2 × nvidia.com/gpu each, and all nodes together hold 3",
            "--nodes 4, or --gpus 8 makes room for all",
        ),
        ("can never fit: 3 pods, and all nodes together hold 2", "--nodes 3 makes room for all"),
        ("can never fit: 2 nodes are avoided after failures there", "--nodes 3 gives it one more"),
        ("can never fit: 1 × google.com/tpu per pod, largest node has 0", "change what the job asks for"),
    ],
)
def test_what_helps(words: str, told: str) -> None:
    assert fleet.remedy(words, pods=4, nodes=2).endswith(told)
