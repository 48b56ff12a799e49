"""The built-in types, read as text from the installed Kubernetes client, since importing it takes 0.6 s."""

import functools
import importlib.util
import re
from pathlib import Path

import msgspec

# The client's names of types that carry a marker of ours, since the client keeps only "string" of them.
QUANTITIES = frozenset({
    "V1ContainerStatus.allocatedResources", "V1EmptyDirVolumeSource.sizeLimit", "V1LimitRangeItem.default",
    "V1LimitRangeItem.defaultRequest", "V1LimitRangeItem.max", "V1LimitRangeItem.maxLimitRequestRatio",
    "V1LimitRangeItem.min", "V1NodeStatus.allocatable", "V1NodeStatus.capacity",
    "V1PersistentVolumeClaimStatus.allocatedResources", "V1PersistentVolumeClaimStatus.capacity",
    "V1PersistentVolumeSpec.capacity", "V1PodSpec.overhead", "V1PodStatus.allocatedResources",
    "V1ResourceFieldSelector.divisor",
    "V1ResourceQuotaSpec.hard", "V1ResourceQuotaStatus.hard", "V1ResourceQuotaStatus.used",
    "V1ResourceRequirements.limits", "V1ResourceRequirements.requests", "V1VolumeResourceRequirements.limits",
    "V1VolumeResourceRequirements.requests",
})  # fmt: skip

# Integers of 64 bits by their names; the client keeps only "integer" of both kinds.
WIDE = frozenset({
    "activeDeadlineSeconds", "deletionGracePeriodSeconds", "expirationSeconds", "fsGroup", "generation",
    "observedGeneration", "runAsGroup", "runAsUser", "supplementalGroups", "terminationGracePeriodSeconds",
    "tolerationSeconds",
})  # fmt: skip

# The client does not say that a schema's items are schemas, too.
SCHEMA = "V1JSONSchemaProps"

_CLASS = re.compile(r"^ *from kubernetes\.client\.models\.(\w+) import (\w+)", re.MULTILINE)
_FIELD = re.compile(r"^    (\w+): (.+?)(?: = (.*))?$", re.MULTILINE)
_ENTRY = re.compile(r'^ {8}"(\w+)": "(.+?)",?$', re.MULTILINE)
_DESCRIPTION = re.compile(r'description="((?:[^"\\]|\\.)*)"')
_CLASS_TEXT = re.compile(r'^class \w+\(BaseModel\):\n    """\n(.*?)\n\n    Attributes:', re.MULTILINE | re.DOTALL)


class Field(msgspec.Struct, frozen=True):
    """`type` is the client's notation, such as `str` or `List[V1Volume]`, or one of `quantity` and `int-or-string`."""

    name: str
    type: str
    required: bool
    description: str


class Definition(msgspec.Struct, frozen=True):
    name: str
    description: str
    fields: tuple[Field, ...]


@functools.cache
def definition(name: str) -> Definition:
    """A type by the client's class name, such as `V1PodSpec`. KeyError when there is none."""
    text = (_models() / f"{_files()[name]}.py").read_text(encoding="utf-8")
    types = dict(_ENTRY.findall(_block(text, "openapi_types")))
    names = dict(_ENTRY.findall(_block(text, "attribute_map")))
    declared = {attribute: (annotation, rest) for attribute, annotation, rest in _FIELD.findall(text)}
    fields = []
    for attribute, notation in types.items():
        # What is a keyword or a method of the client's base class is declared under another name.
        annotation, arguments = declared.get(attribute) or declared[f"var_{attribute.lstrip('_')}"]
        json_name = names[attribute]
        fields.append(
            Field(
                json_name,
                _type(name, json_name, notation, annotation),
                not annotation.startswith("Optional["),
                _described(arguments),
            )
        )
    about = _CLASS_TEXT.search(text)
    return Definition(name, about[1].strip() if about else "", tuple(fields))


def referred(notation: str) -> str | None:
    """The class that a field's type leads to, through lists and maps; None for scalars."""
    inner = notation.removesuffix("]").removeprefix("List[").removeprefix("Dict[str, ")
    return inner if inner in _files() else None


@functools.cache
def _models() -> Path:
    found = importlib.util.find_spec("kubernetes")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("the embedded cluster needs the package kubernetes; install dtj-operator[cli]")
    return Path(found.origin).parent / "client" / "models"


@functools.cache
def _files() -> dict[str, str]:
    text = (_models() / "__init__.py").read_text(encoding="utf-8")
    return {class_name: module for module, class_name in _CLASS.findall(text)}


def _block(text: str, name: str) -> str:
    start = text.index(f"    {name}: ClassVar")
    return text[start : text.index("    }", start)]


def _type(owner: str, field: str, notation: str, annotation: str) -> str:
    if f"{owner}.{field}" in QUANTITIES:
        return "Dict[str, quantity]" if notation.startswith("Dict") else "quantity"
    if owner == SCHEMA and field in ("additionalProperties", "items"):
        return SCHEMA
    if notation == "object" and "StrictInt" in annotation and "StrictStr" in annotation:
        return "int-or-string"
    return notation


def _described(arguments: str) -> str:
    found = _DESCRIPTION.search(arguments)
    return found[1].replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\") if found else ""
