"""Handwritten digits with a loop of one's own: `dtj.loop` makes it resume at the very step at which it was stopped."""

import os
from pathlib import Path

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import dtj_worker as dtj

context = dtj.context()
strategy = dtj.strategy()
tf.keras.utils.set_random_seed(1)

global_batch = context.global_batch or 128
images, labels = load_digits(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(
    images.astype("float32") / 16, labels, test_size=360, random_state=1, stratify=labels
)
train = tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(2000, seed=1)
train = train.batch(global_batch, drop_remainder=True)

with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.Input((64,)),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dropout(0.2),
            tf.keras.layers.Dense(10),
        ]
    )
    optimizer = tf.keras.optimizers.Adam(0.005)
    loss_of_examples = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")


def step_on_replica(batch):
    pixels, digits = batch
    with tf.GradientTape() as tape:
        # The share of this replica: the optimizer adds up the gradients of all.
        loss = tf.reduce_sum(loss_of_examples(digits, model(pixels, training=True))) / global_batch
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


@tf.function
def step(batch):
    return strategy.reduce("SUM", strategy.run(step_on_replica, args=(batch,)), axis=None)


# Every step's loss to its last bit: a run that was killed writes the same ones as a run that wasn't.
path = Path(os.devnull)
if context.log_folder:
    path = Path(context.log_folder, f"losses-{context.task}.txt")
    path.parent.mkdir(parents=True, exist_ok=True)
with dtj.loop(model, optimizer, train, epochs=20) as run, path.open("a") as losses:
    for batch in run:
        loss = step(batch)
        print(run.step + 1, float(loss).hex(), file=losses, flush=True)
        run.end_step(loss)  # Last, since it may save: a restart goes on behind it.

if context.is_chief:
    digits = np.argmax(model(x_test, training=False), axis=1)
    print(f"test accuracy {np.mean(digits == y_test):.3f}")
