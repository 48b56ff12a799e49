"""Models and optimizers of both Kerases, and of none, behind one set of functions: flavour, building, state."""

import sys
from collections.abc import Mapping
from typing import Any, Literal

import tensorflow as tf

Flavour = Literal["Keras3", "Legacy", "None"]


def flavour_of(model: Any) -> Flavour:
    """Which library made the model; None for a tf.Module and the like."""
    legacy, keras = sys.modules.get("tf_keras"), sys.modules.get("keras")
    if legacy is not None and isinstance(model, legacy.Model):
        return "Legacy"
    return "Keras3" if keras is not None and isinstance(model, keras.Model) else "None"


def version_of(flavour: Flavour) -> str:
    """Major and minor version of the flavour's library: what a checkpoint depends on."""
    library = sys.modules.get({"Legacy": "tf_keras", "Keras3": "keras"}.get(flavour, ""))
    return ".".join(str(library.__version__).split(".")[:2]) if library else ""


def strategy_of(model: Any) -> Any:
    """The strategy under which the model's variables were made; the default one if under none."""
    for variable in model.trainable_variables:
        made_under = getattr(_raw(variable), "distribute_strategy", None)
        if made_under is not None:
            return made_under
    return getattr(model, "distribute_strategy", None) or tf.distribute.get_strategy()


def is_built(model: Any) -> bool:
    """Whether the model's variables exist; a tf.Module's always do."""
    return bool(getattr(model, "built", True))


def build(model: Any, optimizer: Any, x: Any) -> None:
    """Make the variables exist that training will need. `x`, the model's input or a dataset, tells shapes."""
    if not is_built(model) and (example := _example(x)) is not None:
        model(example)
    if optimizer is None or not is_built(model):
        return
    if hasattr(optimizer, "build"):
        if not getattr(optimizer, "built", getattr(optimizer, "_built", False)):
            optimizer.build(model.trainable_variables)
    elif hasattr(optimizer, "_create_all_weights"):  # tf_keras.optimizers.legacy
        optimizer._create_all_weights(model.trainable_variables)


def state(model: Any, optimizer: Any) -> dict[str, Any]:
    """What a tf.train.Checkpoint must track so that training goes on as if it had never stopped."""
    if flavour_of(model) == "Keras3":
        # tf.train.Checkpoint(model=…) would leave out the states of Keras 3's seed generators. Metrics are no state:
        # each epoch resets them, and before the first step they don't exist.
        passing = {id(v) for v in model.metrics_variables}
        kept = [v for v in model.variables if id(v) not in passing]
        # Keras numbers its names through the whole program, so that only their ends mean the same in the next run.
        named = {f"{i}|{v.path.rpartition('/')[2]}": _raw(v) for i, v in enumerate(kept)}
        moments = [] if optimizer is None else optimizer.variables
        return {"model": named, "optimizer": {str(i): _raw(v) for i, v in enumerate(moments)}}
    tracked: dict[str, Any] = {"model": model}
    if optimizer is not None and optimizer is not getattr(model, "optimizer", None):
        tracked["optimizer"] = optimizer
    # Dropout's generators, where it has some: the model itself doesn't track them.
    layers = model._flatten_layers() if hasattr(model, "_flatten_layers") else ()
    randoms = (getattr(getattr(layer, "_random_generator", None), "_generator", None) for layer in layers)
    tracked["generators"] = [generator for generator in randoms if generator is not None]
    return tracked


def variables(root: Any, optimizer: Any) -> list[Any]:
    """Every variable that a checkpoint of `root` holds, in an order that is the same on all workers."""
    found = [v for v in tf.train.TrackableView(root).descendants() if isinstance(v, tf.Variable)]
    # The slots of tf_keras.optimizers.legacy are in its checkpoints, but not in the graph of objects.
    slots = getattr(optimizer, "variables", None)
    known = {id(v) for v in found}
    return found + ([v for v in slots() if id(v) not in known] if callable(slots) else [])


def _raw(variable: Any) -> Any:
    """TensorFlow's variable within Keras 3's."""
    return variable if isinstance(variable, tf.Variable) else variable.value


def _example(x: Any) -> Any:
    """One batch of zeros of the model's input; None if its shapes can't be told without reading data."""
    spec = getattr(x, "element_spec", None)
    if spec is not None:
        spec = spec[0] if isinstance(spec, tuple) else spec
        return tf.nest.map_structure(lambda s: tf.zeros([1, *(d or 1 for d in s.shape[1:])], s.dtype), spec)
    leaves = list(x.values()) if isinstance(x, Mapping) else x if isinstance(x, list | tuple) else [x]
    if not all(hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves):
        return None
    return tf.nest.map_structure(lambda a: tf.zeros([1, *a.shape[1:]], a.dtype), x)
