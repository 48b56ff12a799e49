"""What `dtj.strategy()` builds, one step by hand with it, and the end by SIGTERM."""

import os
import signal
import time

import tensorflow as tf
from tensorflow.python.eager.context import context as tensorflow_context

import dtj_worker as dtj

if dtj.context().strategy == "Mirrored":
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = dtj.strategy()
print("strategy:", type(strategy).__name__, strategy is dtj.strategy(), strategy.num_replicas_in_sync)
if service := tensorflow_context().coordination_service:
    print("heartbeat:", service.heartbeat_timeout_in_ms)
with strategy.scope():
    variable = tf.Variable(1.0)


@tf.function  # type: ignore[untyped-decorator]
def step() -> None:
    with tf.GradientTape() as tape:
        loss = variable * 2.0
    tape.gradient(loss, [variable])


strategy.run(step)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
print("outlived SIGTERM")
