"""The environment of the child: TF_CONFIG, checkpoint, threads, a writable HOME, the way in for `sitecustomize`."""

import os
import tempfile
from collections.abc import Mapping
from importlib.machinery import PathFinder
from pathlib import Path

import dtj_worker
from dtj_worker.codec import encode
from dtj_worker.contract import (
    ENV_CHECKPOINT_FOLDER,
    ENV_REPORT_FD,
    ENV_REPORT_PIPE,
    ENV_RESTORE,
    ENV_TASK,
    ENV_TERMINATION_LOG,
    ENV_TOKEN,
    TaskSpec,
)
from dtj_worker.supervisor import machine, tfconfig
from dtj_worker.supervisor.preflight import Prepared
from dtj_worker.supervisor.program import Program
from dtj_worker.supervisor.tfconfig import Cluster

THREAD_VARIABLES = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")

SHARED_MEMORY_BYTES = 256 * 1024**2


def of_child(
    spec: TaskSpec,
    cluster: Cluster | None,
    program: Program,
    prepared: Prepared,
    environ: Mapping[str, str],
    *,
    cgroups: Path = machine.ROOT,
) -> dict[str, str]:
    """What one attempt's child finds in its environment; the report descriptor is added by whoever opens it."""
    made = {name: value for name, value in environ.items() if name not in _OURS}
    made |= {ENV_TASK: encode(spec)} if spec.peers else {}  # Without any, it runs as if nobody had started it.
    config = tfconfig.for_child(cluster, spec)
    made |= {"TF_CONFIG": config} if config else {}
    made |= {ENV_RESTORE: encode(prepared.restore)} if prepared.restore else {}
    made |= {ENV_CHECKPOINT_FOLDER: str(prepared.folder)} if prepared.folder else {}
    made |= {name: value for name, value in _defaults(cgroups).items() if not environ.get(name)}
    made |= _writable(environ)
    made |= _keras(spec, environ)
    made["PYTHONPATH"] = os.pathsep.join(_python_path(program, environ))
    return made


def notices(spec: TaskSpec) -> list[str]:
    """What people should know about this container before the program starts."""
    found = []
    shared = machine.shared_memory_bytes()
    if machine.has_gpu() and shared is not None and shared < SHARED_MEMORY_BYTES:
        found.append(
            f"/dev/shm has {shared // 1024**2} MiB; NCCL and data loaders want more: mount an emptyDir of medium Memory"
        )
    if _wants_legacy_keras(spec) and not _has_legacy_keras():
        found.append(f"tf_keras is not installed, so `fit` won't work under {spec.strategy}; custom loops do")
    return found


def _defaults(cgroups: Path) -> dict[str, str]:
    # Level 1 leaves TensorFlow's warnings and errors; without it thirty lines about ports hide the program's own.
    made = {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1", "TF_CPP_MIN_LOG_LEVEL": "1"}
    if threads := machine.threads(cgroups):
        # TensorFlow counts the machine's cores, whatever the container may use of them.
        made |= dict.fromkeys(THREAD_VARIABLES, str(threads))
    return made


def _writable(environ: Mapping[str, str]) -> dict[str, str]:
    """TMPDIR and HOME that can be written to: caches of Keras, TensorFlow Hub, matplotlib and CUDA all follow HOME."""
    try:
        scratch = tempfile.gettempdir()
    except FileNotFoundError:
        return {}  # Nothing here can be written to; what needs a place says so itself.
    home = environ.get("HOME", "")
    is_usable = home not in ("", "/") and os.access(home, os.W_OK)
    return {"TMPDIR": scratch} | ({} if is_usable else {"HOME": scratch})


def _keras(spec: TaskSpec, environ: Mapping[str, str]) -> dict[str, str]:
    if spec.keras != "Auto":
        return {"TF_USE_LEGACY_KERAS": "1" if spec.keras == "Legacy" else "0"}
    asked = environ.get("TF_USE_LEGACY_KERAS") is not None
    return {} if asked or not (_wants_legacy_keras(spec) and _has_legacy_keras()) else {"TF_USE_LEGACY_KERAS": "1"}


def _wants_legacy_keras(spec: TaskSpec) -> bool:
    # `fit` of Keras 3 fails under both (keras-team/keras#20585); custom loops work with either Keras.
    return spec.keras == "Auto" and spec.strategy in ("MultiWorkerMirrored", "ParameterServer")


def _has_legacy_keras() -> bool:
    return PathFinder.find_spec("tf_keras") is not None


def _python_path(program: Program, environ: Mapping[str, str]) -> list[str]:
    package = Path(dtj_worker.__file__).parent
    path = [environ["PYTHONPATH"]] if environ.get("PYTHONPATH") else []
    if environ.get("DTJ_INJECT") != "0":
        path.insert(0, str(package / "training" / "site"))
    if package.parent.is_file():  # The zipapp: no other Python finds the package in it by itself.
        path.append(str(package.parent))
    return [*path, str(Path.cwd())] if program.is_ours else path


# The token opens the status port of every task; the program needs none of it.
_OURS = {
    ENV_TOKEN,
    ENV_REPORT_FD,
    ENV_REPORT_PIPE,
    ENV_RESTORE,
    ENV_CHECKPOINT_FOLDER,
    ENV_TERMINATION_LOG,
    "TF_CONFIG",
}
