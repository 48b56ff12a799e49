"""Two custom loops on one host, of the kinds that the digits don't show; prints which rows each step saw."""

from typing import Any

import tensorflow as tf

import dtj_worker as dtj

generator = tf.random.Generator.from_seed(3)


class Model(tf.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.weight = tf.Variable(1.0)


def rows(seed: int) -> Any:
    return tf.data.Dataset.range(20).shuffle(20, seed=seed).batch(4)


def rows_of_epoch(epoch: int) -> Any:
    """Nobody knows how many a filter leaves."""
    return rows(epoch).filter(lambda batch: True)


def train(name: str, run: Any, limit: int | None = None) -> None:
    for batch in run:
        model.weight.assign(model.weight * 1.1 + tf.reduce_mean(tf.cast(batch, tf.float32)) + generator.normal(()))
        run.end_step(model.weight)
        print(name, run.step, run.epoch, batch.numpy().tolist(), float(model.weight).hex())
        if run.step == limit:
            break


model = Model()
with dtj.loop(model, None, rows(5), epochs=3, generator=generator) as run:
    train("first", run, limit=12)
print("after first:", float(model.weight).hex())
with dtj.loop(model, None, rows_of_epoch, epochs=3, generator=generator) as run:
    train("second", run)
print("after second:", float(model.weight).hex())
