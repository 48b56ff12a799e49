"""Manifests as a person has them: files of several documents, or the standard input. Faults are told by document."""

import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from dtj_operator.api import names
from dtj_operator.api.faults import all_faults
from dtj_operator.cli.outcome import BAD_MANIFEST, Ended
from dtj_operator.cli.podfields import pod_field_faults

Json = dict[str, Any]

STANDARD_INPUT = "-"

MOST_VALUES = 1_000_000
"""Of one document, with its aliases written out: a few lines of aliases of aliases could make billions."""


class Document(msgspec.Struct, frozen=True):
    """One object of a file. `place` is where it stands: `job.yaml`, or `job.yaml, document 2` where there are more."""

    body: Json
    place: str
    folder: Path

    @property
    def is_job(self) -> bool:
        return self.body.get("kind") == names.KIND and str(self.body.get("apiVersion")).startswith(f"{names.GROUP}/")

    @property
    def namespace(self) -> str:
        return str(_metadata(self.body).get("namespace") or "default")

    @property
    def name(self) -> str:
        return str(_metadata(self.body).get("name") or "")


def read(files: Sequence[str]) -> list[Document]:
    """All objects of these files, `-` being the standard input. Ended with BAD_MANIFEST where a file can't be read."""
    return [document for file in files for document in _documents(file)]


def jobs(files: Sequence[str]) -> list[Document]:
    """All jobs in these files. Ended where there is none, or with a line for each fault that they have."""
    documents = read(files)
    found = [document for document in documents if document.is_job]
    if not found:
        raise _no_job(documents, files)
    if told := [fault for job in found for fault in faults(job)]:
        raise Ended(BAD_MANIFEST, told)
    return found


def the_job(documents: Sequence[Document], files: Sequence[str]) -> Document:
    """The one job among the objects."""
    found = [document for document in documents if document.is_job]
    if not found:
        raise _no_job(documents, files)
    if len(found) > 1:
        listed = ", ".join(f"{job.name} ({job.place})" for job in found)
        told = f"{_shown(*files)}: one {names.KIND} at a time, not {len(found)}: {listed}"
        raise Ended(BAD_MANIFEST, [told])
    return found[0]


def faults(document: Document) -> list[str]:
    """Every fault of a job, each one with file and field path."""
    told = list(all_faults(document.body))
    # A path of which there is a line already has it in better words.
    known = {line.partition(": ")[0] for line in told}
    told += [line for line in pod_field_faults(document.body) if line.partition(": ")[0] not in known]
    return [f"{document.place}: {fault}" for fault in told]


def with_annotation(document: Document, name: str, value: str) -> Document:
    metadata = _metadata(document.body)
    changed = {**metadata, "annotations": {**(metadata.get("annotations") or {}), name: value}}
    return msgspec.structs.replace(document, body={**document.body, "metadata": changed})


def _no_job(documents: Sequence[Document], files: Sequence[str]) -> Ended:
    if not documents:
        return Ended(BAD_MANIFEST, [f"{_shown(*files)}: it is empty; a {names.KIND} is expected in it"])
    kinds = ", ".join(sorted({str(document.body.get("kind")) for document in documents}))
    told = f"{_shown(*files)}: there is no {names.KIND} (apiVersion {names.API_VERSION}) in it, only {kinds}"
    return Ended(BAD_MANIFEST, [told])


def _shown(*files: str) -> str:
    return ", ".join("standard input" if file == STANDARD_INPUT else file for file in files)


def _documents(file: str) -> Iterator[Document]:
    shown = _shown(file)
    folder = Path.cwd() if file == STANDARD_INPUT else Path(file).absolute().parent
    try:
        text = sys.stdin.buffer.read() if file == STANDARD_INPUT else Path(file).read_bytes()
        # Empty documents, as after a last `---`, are none.
        found = [body for body in _loaded(text, shown) if body is not None]
        if max((_values(body, {}) for body in found), default=0) > MOST_VALUES:
            raise Ended(BAD_MANIFEST, [f"{shown}: its aliases stand for more than {MOST_VALUES} values"])
        found = [msgspec.json.decode(msgspec.json.encode(body)) for body in found]
    except OSError as problem:
        raise Ended(BAD_MANIFEST, [f"{shown}: {problem.strerror}"]) from None
    except yaml.MarkedYAMLError as problem:
        told = ": ".join(words for words in (problem.context, problem.problem) if words)
        raise Ended(BAD_MANIFEST, [f"{shown}: no YAML: {_at(problem.problem_mark)}{told}"]) from None
    except (yaml.YAMLError, UnicodeError) as problem:
        raise Ended(BAD_MANIFEST, [f"{shown}: no YAML: {' '.join(str(problem).split())}"]) from None
    except RecursionError:
        raise Ended(BAD_MANIFEST, [f"{shown}: it is nested too deep, or contains itself"]) from None
    except (TypeError, ValueError) as problem:
        raise Ended(BAD_MANIFEST, [f"{shown}: it holds what JSON can't: {problem}"]) from None
    objects = [item for body in found for item in _items(body)]
    for number, body in enumerate(objects, 1):
        place = shown if len(objects) == 1 else f"{shown}, document {number}"
        if not isinstance(body, dict):
            raise Ended(BAD_MANIFEST, [f"{place}: a manifest is an object with apiVersion, kind and metadata"])
        yield Document(body, place, folder)


def _loaded(text: bytes, shown: str) -> Iterator[Any]:
    """Each document. Ended where a key is there twice, of which the last one would count without a word."""
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if told := [f"{shown}: {fault}" for fault in _twice(node)]:
                raise Ended(BAD_MANIFEST, told)
            yield loader.construct_document(node)
    finally:
        loader.dispose()


def _twice(root: yaml.Node | None) -> list[str]:
    """A line for each key that a map has more than once, in the file's order."""
    found: dict[int, str] = {}
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        # By an alias a node is there several times, and may hold itself.
        if not isinstance(node, yaml.CollectionNode) or id(node) in seen:
            continue
        seen.add(id(node))
        if not isinstance(node, yaml.MappingNode):
            waiting += node.value
            continue
        first: dict[tuple[str, str], int] = {}
        for key, value in node.value:
            waiting += key, value
            # `<<` may be repeated: each brings in another map.
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            mark, known = key.start_mark, (key.tag, key.value)
            if known in first:
                there = f"{key.value!r:.80} is there again, first in line {first[known]}"
                found[mark.index] = f"line {mark.line + 1}: {there}; leave one of them"
            first.setdefault(known, mark.line + 1)
    return [found[index] for index in sorted(found)]


def _at(mark: Any) -> str:
    return "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "


def _items(body: Any) -> list[Any]:
    """The objects of a `List`, as `kubectl get -o yaml` prints them; else the one."""
    if isinstance(body, dict) and body.get("kind") == "List" and isinstance(body.get("items"), list):
        return list(body["items"])
    return [body]


def _metadata(body: Json) -> Json:
    metadata = body.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _values(body: Any, known: dict[int, float]) -> float:
    """How many values it is once its aliases are written out; RecursionError if it contains itself."""
    if isinstance(body, float) and not math.isfinite(body):
        raise ValueError(f"the number {body}")
    if not isinstance(body, dict | list):
        return 1
    if id(body) not in known:
        known[id(body)] = math.inf
        known[id(body)] = 1 + sum(_values(part, known) for part in (body.values() if isinstance(body, dict) else body))
    if known[id(body)] == math.inf:
        raise RecursionError
    return known[id(body)]


class _Loader(yaml.CSafeLoader):
    """YAML as kubectl reads it: what looks like a date is a text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
