"""A model whose workers differ between steps, by BatchNorm's statistics; exported at the end by all."""

import hashlib
from pathlib import Path

import numpy as np
import tensorflow as tf

import dtj_worker as dtj

context = dtj.context()
strategy = dtj.strategy()
tf.keras.utils.set_random_seed(7)
random = np.random.default_rng(3)
x = random.normal(size=(256, 16)).astype("float32")
y = (x.sum(axis=1) > 0).astype("int64")
with strategy.scope():
    layers = [tf.keras.layers.Dense(16), tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(2)]
    model = tf.keras.Sequential(layers)
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(context.global_batch)
model.fit(data, epochs=6, callbacks=dtj.callbacks(), verbose=0)

folder = Path(context.checkpoint_folder or "").parents[1]
for path in (folder / "saved-model", folder / "model.keras"):
    dtj.save(model, str(path))


def digest(values: list[np.ndarray]) -> str:
    return hashlib.sha1(b"".join(value.tobytes() for value in values)).hexdigest()


print("batches:", context.batch_per_replica, context.batch_per_worker, context.global_batch)
print("trained:", digest([v.numpy() for v in model.trainable_variables]))
means = [float(np.mean(v.numpy())).hex() for v in model.non_trainable_variables]
print("means:", means)
expected = model(x[:4])  # By all: between steps, too, the statistics can only be read by all together.
if context.is_chief:
    # A SavedModel is read where no strategy is: each of its signatures takes a batch.
    loaded = tf.keras.models.load_model(folder / "model.keras")
    served = tf.saved_model.load(str(folder / "saved-model"))
    print("equal:", np.allclose(loaded(x[:4]), served(x[:4])), np.allclose(loaded(x[:4]), expected))
