"""Run by every Python of a training program before the program: finds the moment when there is something to watch.

It costs a fraction of a millisecond; TensorFlow's import is what calls `dtj_worker.training.inject`. A `sitecustomize`
that the image brings runs first, an error in here ends no program, and DTJ_INJECT=0 leaves the program alone.
"""

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType, TracebackType
from typing import Any

# No pathlib here, whose import would take longer than everything else.
HERE = os.path.dirname(__file__)  # noqa: PTH120
ROOT = __file__.removesuffix("/dtj_worker/training/site/sitecustomize.py")
"""Where dtj_worker lies: a folder, or the zipapp."""

WATCHED = (
    "keras.src.backend.tensorflow.trainer",
    "tensorflow.python.distribute.collective_all_reduce_strategy",
    "tensorflow.python.distribute.distribute_lib",
    "tensorflow.python.eager.backprop",
    "tf_keras.src.engine.training",
)


class Finder:
    """First of the finders: lets the others find a module, and has its hook called when it has run.

    The loader stays the object that it was, so that `inspect.getsource` and package resources go on working.
    """

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in WATCHED:
            return None
        others = (f for f in sys.meta_path if f is not Finder and hasattr(f, "find_spec"))
        spec = next((s for f in others if (s := f.find_spec(name, path, target))), None)
        loader: Any = spec and spec.loader
        if hasattr(loader, "exec_module"):
            run = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                _hook(name, module)

            loader.exec_module = exec_module
        return spec


def _hook(name: str, module: ModuleType) -> None:
    try:
        _make_importable()
        from dtj_worker.training import inject  # noqa: PLC0415 - most processes never come here

        inject.hook(name, module)
    except Exception as error:
        print(f"dtj: {name} is not watched: {type(error).__name__}: {error}", file=sys.stderr)


def _make_importable() -> None:
    if ROOT not in sys.path:
        sys.path.append(ROOT)


def _run_the_one_before() -> None:
    """The image's own `sitecustomize`, which ours hides."""
    found = PathFinder.find_spec("sitecustomize", [folder for folder in sys.path if folder != HERE])
    if found is not None and found.loader is not None:
        try:
            found.loader.exec_module(ModuleType("sitecustomize"))
        except Exception as error:
            print(f"dtj: {found.origin}: {type(error).__name__}: {error}", file=sys.stderr)


def _listen() -> None:
    """Tell the supervisor of the exception that ends the program; let its signal (STACKS_SIGNAL) dump the stacks."""
    import faulthandler  # noqa: PLC0415
    import signal  # noqa: PLC0415

    if sys.stderr is not None:
        faulthandler.register(signal.SIGUSR2, all_threads=True)
    before, owner = sys.excepthook, os.getpid()

    def excepthook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if os.getpid() == owner and issubclass(kind, Exception):
            try:
                _make_importable()
                from dtj_worker.training.report import reporter  # noqa: PLC0415

                reporter().problem(f"{kind.__name__}: {error}")
            except Exception as second:
                print(f"dtj: not reported: {type(second).__name__}: {second}", file=sys.stderr)
        before(kind, error, traceback)

    sys.excepthook = excepthook


_run_the_one_before()
if os.environ.get("DTJ_INJECT") != "0" and "DTJ_TASK" in os.environ:
    sys.meta_path.insert(0, Finder)
    for _name in WATCHED:
        if _name in sys.modules:  # What a .pth file imports is there before us.
            _hook(_name, sys.modules[_name])
    _listen()
