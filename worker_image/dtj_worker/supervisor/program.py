"""Which command the words behind `dtj-worker` name. Nothing of the program is imported, and it is started elsewhere."""

import atexit
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from dtj_worker.contract import ConfigFault

USAGE = "dtj-worker train.py | package.module[:function] | notebook.ipynb | -- COMMAND  [arguments]"


@dataclass(frozen=True)
class Program:
    command: tuple[str, ...]
    is_ours: bool
    """Whether it runs under this Python with the working directory importable; a foreign command is left as it is."""
    digest: str
    """Of the words and, where there is one, of the file they name: tells a later run whether it runs the same."""

    @property
    def is_python(self) -> bool:
        """Whether Python runs it and nothing else: a shell may have fetched packages before, and that may heal."""
        return self.is_ours or re.fullmatch(r"python[\d.]*", Path(self.command[0]).name) is not None


def resolve(words: Sequence[str], environ: Mapping[str, str] = os.environ) -> Program:
    """The program that the words name. ConfigFault, in one line, if there is none."""
    if not words or (words[0] != "--" and words[0].startswith("-")):
        raise ConfigFault(f"{'no program was named' if not words else f'unknown option {words[0]}'}; usage: {USAGE}")
    if words[0] == "--":
        return _command(words[1:], environ)
    name, *arguments = words
    if name.endswith((".py", ".ipynb")):
        return _script(name, arguments)
    module, colon, function = name.partition(":")
    _find_module(module)
    if not colon:
        return Program((sys.executable, "-m", module, *arguments), True, _digest(words))
    if not function.isidentifier():
        raise ConfigFault(f"{name}: {function!r} names no function; expected package.module:function")
    return Program((sys.executable, "-m", "dtj_worker.training.run", name, *arguments), True, _digest(words))


def _command(words: Sequence[str], environ: Mapping[str, str]) -> Program:
    if not words:
        raise ConfigFault(f"no command behind --; usage: {USAGE}")
    folders = [""] if "/" in words[0] else environ.get("PATH", os.defpath).split(os.pathsep)
    found = [path for path in (Path(folder, words[0]) for folder in folders) if path.is_file()]
    if not found:
        where = f"in {Path.cwd()}" if "/" in words[0] else "on PATH"
        raise ConfigFault(f"program {words[0]}: no such file {where}")
    if not any(os.access(path, os.X_OK) for path in found):
        raise ConfigFault(f"program {found[0]} may not be executed: chmod +x it, or name its interpreter")
    return Program(tuple(words), False, _digest(words))


def _script(name: str, arguments: Sequence[str]) -> Program:
    try:
        content = Path(name).read_bytes()
    except OSError as error:
        raise ConfigFault(f"program {name}: {error.strerror} (working directory {Path.cwd()})") from None
    path = str(_as_script(name, content)) if name.endswith(".ipynb") else name
    return Program((sys.executable, path, *arguments), True, _digest([name, *arguments], content))


def _as_script(name: str, content: bytes) -> Path:
    """A notebook's code cells as a script; the lines that only a notebook understands stay as comments."""
    try:
        cells = json.loads(content)["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError):
        raise ConfigFault(f"program {name}: not a notebook of format 4") from None
    folder = tempfile.mkdtemp(prefix="dtj-notebook-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    script = Path(folder, Path(name).stem + ".py")
    lines = [f"import sys; sys.path[0] = {str(Path(name).resolve().parent)!r}"]
    for number, source in enumerate(sources, 1):
        lines += [f"# Cell {number}", *_plain_python(source)]
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return script


def _plain_python(cell: str) -> list[str]:
    lines = cell.splitlines()
    if cell.startswith("%%") and not cell.startswith(("%%time", "%%capture")):
        return [f"# {line}" for line in lines]  # Another language's cell.
    return [re.sub(r"^(\s*)([%!].*)", r"\1pass  # \2", line) for line in lines]


def _find_module(name: str) -> None:
    """ConfigFault unless Python will find the module. Its parents are looked up, not imported: they are the child's."""
    path = [str(Path.cwd()), *sys.path]
    parts = name.split(".")
    for depth, part in enumerate(parts, 1):
        sofar = ".".join(parts[:depth])
        spec = PathFinder.find_spec(sofar, path) if part.isidentifier() else None
        if spec is None:
            raise ConfigFault(f"program {name}: no module {sofar} in {Path.cwd()} nor in this Python")
        path = list(spec.submodule_search_locations or [])


def _digest(words: Sequence[str], content: bytes = b"") -> str:
    return hashlib.sha256(
        b"\0".join(word.encode(errors="surrogateescape") for word in words) + b"\0" + content
    ).hexdigest()
