"""Paths of a container on this machine: its mounts are folders elsewhere, so whatever names them is rewritten."""

import re
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

_WORD = re.compile(r"[\w@%+=:,./-]+")
READ_BYTES = 1 << 20
"""How much of a program is searched for paths that are written in it."""


class Paths:
    """Container path → folder here. A longer path goes before one that it lies in."""

    def __init__(self, folders: Mapping[str, str]) -> None:
        self._folders = {_plain(inside): outside for inside, outside in folders.items()}
        longest = sorted(self._folders, key=len, reverse=True)
        alternatives = "|".join(re.escape(inside) for inside in longest)
        # A whole path: `/data` in `--data=/data/train`, and neither in `/mydata`, `x/data` nor `/database`.
        self._inside = re.compile(rf"(?<![\w.~/-])(?:{alternatives})(?![\w.-])") if alternatives else None

    def with_file(self, inside: str, outside: str) -> "Paths":
        """The same, and one more."""
        return Paths(self._folders | ({inside: outside} if inside else {}))

    def rewritten(self, text: str) -> str:
        """The text with every path of a mount as it is here."""
        if self._inside is None:
            return text
        return self._inside.sub(lambda found: self._folders[found[0]], text)

    def here(self, inside: str) -> str | None:
        """Where a container's path lies; None where it lies in no mount, but in the image that is not there."""
        path = _plain(inside)
        for parent in (path, *(str(parent) for parent in Path(path).parents)):
            if parent in self._folders:
                return self._folders[parent] + path[len(parent) :]
        return None

    def written_in(self, program: Path) -> list[tuple[int, str]]:
        """Line numbers and mounts that a program's own text names: those it will not find here."""
        if self._inside is None:
            return []
        try:
            with program.open(errors="replace") as file:
                lines = file.read(READ_BYTES).splitlines()
        except OSError:
            return []
        return [(number, found[0]) for number, line in enumerate(lines, 1) for found in self._inside.finditer(line)]


def unquoted(folder: Path, stack: AsyncExitStack) -> Path:
    """The folder under a name that a shell takes as one word, for the time of the stack.

    Paths are rewritten in scripts too, as in `sh -c 'ls /data'`, where quotes can't be put around them.
    """
    absolute = folder.absolute()
    if _WORD.fullmatch(str(absolute)):
        return absolute
    links = Path(tempfile.mkdtemp(prefix="dtj-link-")).resolve()
    stack.callback(shutil.rmtree, links, ignore_errors=True)
    (links / "to").symlink_to(absolute)
    return links / "to"


def _plain(path: str) -> str:
    return "/" + path.strip("/")
