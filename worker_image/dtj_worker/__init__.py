"""What runs inside the pods of a job: the contract, the supervisor, and the library for training programs.

The library's public part is here, `import dtj_worker as dtj`. A name is imported when it is used: this import is cheap,
and a program may still set what TensorFlow reads at its own.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dtj_worker.training.context import busy as busy
    from dtj_worker.training.context import context as context
    from dtj_worker.training.export import save as save
    from dtj_worker.training.keras import callbacks as callbacks
    from dtj_worker.training.loop import loop as loop
    from dtj_worker.training.strategies import strategy as strategy

_HOMES = {
    "busy": "context",
    "callbacks": "keras",
    "context": "context",
    "loop": "loop",
    "save": "export",
    "strategy": "strategies",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"dtj_worker has no {name!r}; this version has {', '.join(_HOMES)}")
    return getattr(importlib.import_module(f"dtj_worker.training.{_HOMES[name]}"), name)
