"""What other callbacks remember survives as plain values; a changed list of them keeps what still fits."""

import json
from typing import Any

import numpy as np
import pytest

from dtj_worker.training import callback_state


class EarlyStopping:
    def __init__(self, **remembered: Any) -> None:
        self.__dict__ |= {
            "wait": 0,
            "best": np.inf,
            "best_epoch": 0,
            "stopped_epoch": 0,
            "best_weights": None,
        } | remembered


class Mine(EarlyStopping):
    """A program's own kind."""


class ReduceLROnPlateau:
    def __init__(self, **remembered: Any) -> None:
        self.__dict__ |= {"wait": 0, "best": None, "cooldown_counter": 0} | remembered


class TensorBoard:
    wait = 7


class History:
    def __init__(self, epoch: list[int], history: dict[str, list[Any]]) -> None:
        self.epoch, self.history = epoch, history


def through_a_file(memories: list[dict[str, Any]]) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads(json.dumps(memories))
    return loaded


def test_memories_come_back() -> None:
    weights = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array(2.0)]
    before = [
        Mine(wait=2, best=np.float32(0.25), best_epoch=3, best_weights=weights),
        TensorBoard(),
        ReduceLROnPlateau(best=0.5),
    ]
    memories, arrays = callback_state.take(before)
    after = [Mine(), TensorBoard(), ReduceLROnPlateau()]
    callback_state.put_back(after, through_a_file(memories), arrays)
    stopping, _, plateau = (vars(callback) for callback in after)
    assert (stopping["wait"], stopping["best"], stopping["best_epoch"]) == (2, 0.25, 3)
    assert all(np.array_equal(a, b) for a, b in zip(stopping["best_weights"], weights, strict=True))
    assert (plateau["wait"], plateau["best"]) == (0, 0.5)


def test_what_no_improvement_has_set_stays_infinite() -> None:
    memories, arrays = callback_state.take([EarlyStopping()])
    after = EarlyStopping(best=0.1)
    callback_state.put_back([after], through_a_file(memories), arrays)
    assert vars(after)["best"] == np.inf


def test_another_list_of_callbacks_takes_what_fits() -> None:
    memories, arrays = callback_state.take([EarlyStopping(wait=2), ReduceLROnPlateau(wait=3)])
    after = [ReduceLROnPlateau(), ReduceLROnPlateau(), EarlyStopping()]
    callback_state.put_back(after, memories, arrays)
    assert [vars(callback)["wait"] for callback in after] == [0, 3, 0]


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param([0], {"epoch": [0, 1], "history": {"loss": [0.5, 0.25]}}, id="it comes after ours in the list"),
        pytest.param([0, 1], {"epoch": [0, 1], "history": {"loss": [0.5]}}, id="it comes before ours"),
    ],
)
def test_history_has_the_epoch_that_ends(known: list[int], expected: dict[str, Any]) -> None:
    record = callback_state.history(History(known, {"loss": [np.float32(0.5)]}), 1, {"loss": np.float32(0.25)})
    assert record == expected
    after = History([], {})
    callback_state.put_back_history(after, record)
    assert vars(after) == expected
