"""Handwritten digits with `fit`: an ordinary Keras script for several workers. Nothing in it knows of a job."""

import argparse

import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

GLOBAL_BATCH = 128
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
epochs = parser.parse_args().epochs

# Before anything else of TensorFlow: here all workers find each other.
strategy = tf.distribute.MultiWorkerMirroredStrategy()
is_chief = not strategy.cluster_resolver.task_id
tf.keras.utils.set_random_seed(1)

images, labels = load_digits(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(
    images.astype("float32") / 16, labels, test_size=360, random_state=1, stratify=labels
)
# The seed gives every worker the same order, so that the parts which they take are disjoint.
train = tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(2000, seed=1)
train = train.batch(GLOBAL_BATCH, drop_remainder=True)
test = tf.data.Dataset.from_tensor_slices((x_test, y_test)).batch(GLOBAL_BATCH)

with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(64, activation="relu", input_shape=(64,)),
            tf.keras.layers.Dropout(0.2),
            tf.keras.layers.Dense(10),
        ]
    )
    model.compile(
        optimizer=tf.keras.optimizers.Adam(0.005),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )

model.fit(train, epochs=epochs, verbose=2 if is_chief else 0)
_, accuracy = model.evaluate(test, verbose=0)
if is_chief:
    print(f"test accuracy {accuracy:.3f}")
