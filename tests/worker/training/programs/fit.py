"""An ordinary tf.keras script: nothing in it knows of the job."""

import hashlib

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(7)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
random = np.random.default_rng(3)
x = random.normal(size=(512, 16)).astype("float32")
y = (x.sum(axis=1) > 0).astype("int64")

with strategy.scope():
    layers = [tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(2)]
    model = tf.keras.Sequential(layers)
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])

data = tf.data.Dataset.from_tensor_slices((x, y)).batch(64)
stopping = tf.keras.callbacks.EarlyStopping("loss", min_delta=0.05, patience=2, restore_best_weights=True)
first = model.fit(data, epochs=12, callbacks=[stopping], verbose=0)
print(
    "first:", {name: [float(v) for v in values] for name, values in first.history.items()}, first.epoch, stopping.wait
)
print("after first:", hashlib.sha1(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
second = model.fit(data, epochs=3, verbose=0)
print("second:", {name: [float(v) for v in values] for name, values in second.history.items()})
print("after second:", hashlib.sha1(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
