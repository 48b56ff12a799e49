"""The strategies that `dtj.strategy()` builds, and what is told of a program that reports nothing by itself."""

from pathlib import Path

import pytest

from dtj_worker.contract import Strategy
from tests.worker.training.gang import Job

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize(
    ("strategy", "built", "name", "replicas"),
    [
        ("MultiWorkerMirrored", "CollectiveAllReduceStrategy", "MultiWorkerMirroredStrategy", 1),
        ("Mirrored", "MirroredStrategy", "MirroredStrategy", 2),
        ("OneDevice", "OneDeviceStrategy", "OneDeviceStrategy", 1),
    ],
)
def test_a_strategy(tmp_path: Path, strategy: Strategy, built: str, name: str, replicas: int) -> None:
    ended = Job(tmp_path, "strategies.py", workers=1, strategy=strategy).run()[0]
    assert ended.value("strategy") == f"{built} True {replicas}"
    if strategy == "MultiWorkerMirrored":
        assert ended.value("heartbeat") == "30000"
    assert [r.message for r in ended.told("Constructing")] == [name]
    assert [r.replicas for r in ended.told("Built")] == [replicas]
    (notice,) = ended.told("Notice")
    assert notice.message
    assert notice.message.startswith("NothingSaved: the program trains neither by fit nor by dtj.loop")
    assert ended.code == -15
    assert "outlived SIGTERM" not in ended.lines


def test_a_strategy_that_is_not_there_yet(tmp_path: Path) -> None:
    ended = Job(tmp_path, "strategies.py", workers=1, strategy="CentralStorage").run()[0]
    assert ended.code == 64
    assert ended.problem.startswith("strategy CentralStorage: this version of dtj-worker builds None, OneDevice, ")
