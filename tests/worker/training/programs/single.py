"""A `fit` on one host; what varies is said by the arguments: --keras3, --mirrored, --dropout, --epochs=n, --full=n.

With --full the disk takes no file of more than a kilobyte until epoch n.
"""

import hashlib
import resource
import sys

import numpy as np
import tensorflow as tf

arguments = dict(argument.lstrip("-").partition("=")[::2] for argument in sys.argv[1:])
if "keras3" in arguments:
    import keras
else:
    keras = tf.keras
if "mirrored" in arguments:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
else:
    strategy = tf.distribute.get_strategy()
keras.utils.set_random_seed(7)
random = np.random.default_rng(3)
x = random.normal(size=(256, 16)).astype("float32")
y = (x.sum(axis=1) > 0).astype("int64")
with strategy.scope():
    layers = [keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2)]
    layers += [keras.layers.Dropout(0.1)] if "dropout" in arguments else []
    model = keras.Sequential(layers)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(), loss, metrics=["accuracy"])


LIMITS = resource.getrlimit(resource.RLIMIT_FSIZE)
if "full" in arguments:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, LIMITS[1]))


class Batches(keras.callbacks.Callback):  # type: ignore[misc]
    """What `fit` itself says about where it is."""

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        print("batch", batch, "after", int(self.model.optimizer.iterations.numpy()))

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        if epoch == int(arguments.get("full") or -1):
            resource.setrlimit(resource.RLIMIT_FSIZE, LIMITS)


stopping = keras.callbacks.EarlyStopping("loss", min_delta=1, patience=4, restore_best_weights=True)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
callbacks = [Batches(), stopping, keras.callbacks.BackupAndRestore("never-used")]
record = model.fit(data, epochs=int(arguments.get("epochs", 9)), callbacks=callbacks, verbose=0)
print("replicas:", model.distribute_strategy.num_replicas_in_sync)
print("iterations:", int(model.optimizer.iterations.numpy()))
print("epochs:", record.epoch)
print("losses:", [float(value) for value in record.history["loss"]])
print("waited:", stopping.wait, stopping.stopped_epoch)
print("weights:", hashlib.sha1(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
