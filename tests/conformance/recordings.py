"""The answers of a real kube-apiserver, kept in `answers/`: one file per topic, written to be read."""

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]

FOLDER = Path(__file__).parent / "answers"
_WIDTH = 118


def recorded(topic: str, folder: Path = FOLDER) -> Json:
    """`server` is the version that answered, `stories` the steps by the story's name; empty where nothing is there."""
    path = folder / f"{topic}.json"
    found: Json = json.loads(path.read_text()) if path.exists() else {"server": "", "stories": {}}
    return found


def record(topic: str, server: str, stories: dict[str, list[Json]], folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{topic}.json").write_text(laid_out({"server": server, "stories": stories}) + "\n")


def laid_out(value: Any, indent: int = 0, room: int = 0) -> str:
    """JSON in which what fits on a line stands on one."""
    flat = json.dumps(value, ensure_ascii=False, sort_keys=False)
    if not isinstance(value, dict | list) or len(flat) + indent + room <= _WIDTH:
        return flat
    inside, outside = " " * (indent + 1), " " * indent
    if isinstance(value, list):
        lines = [laid_out(item, indent + 1, 1) for item in value]
        opening, closing = "[]"
    else:
        named = {json.dumps(key, ensure_ascii=False): inner for key, inner in value.items()}
        lines = [f"{key}: {laid_out(inner, indent + 1, len(key) + 3)}" for key, inner in named.items()]
        opening, closing = "{}"
    return f"{opening}\n{inside}" + f",\n{inside}".join(lines) + f"\n{outside}{closing}"
