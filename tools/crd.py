"""`make crd`: what is made of the types in `dtj_operator.api`: definition (crds/, chart), pages of docs/."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from dtj_operator.api.crd import crd
from tools import reference

ROOT = Path(__file__).resolve().parent.parent
STYLE: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "width": 120}


def main() -> None:
    for path, text in made().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def made() -> Mapping[Path, str]:
    """Each file with what it must hold; a test compares."""
    return {
        ROOT / "crds" / f"{crd()['metadata']['name']}.yaml": definition(),
        ROOT / "charts" / "dtj-operator" / "files" / "crd.yaml": definition(),
        ROOT / "install.yaml": install(),
        ROOT / "docs" / "reference.md": reference.resource(),
        ROOT / "docs" / "reasons.md": reference.reasons(),
    }


def definition() -> str:
    """The CustomResourceDefinition as YAML."""
    return f"# Made by `make crd` of the types in dtj_operator/api.\n{yaml.safe_dump(with_version(), **STYLE)}"


def install() -> str:
    """install.yaml with this definition in it; the rest of it is `make chart`'s, which takes Helm."""
    text = (ROOT / "install.yaml").read_text()
    head = text[: text.index("apiVersion")]
    made = with_version()
    documents = list(yaml.safe_load_all(text))
    for document in documents:
        if document["kind"] == made["kind"]:
            document["spec"] = made["spec"]
            document["metadata"] |= made["metadata"]
    made_anew: str = yaml.safe_dump_all(documents, **STYLE)
    return head + made_anew


def with_version() -> dict[str, Any]:
    """The definition with the version of the operator, by which the chart knows an older one from a newer."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    made = crd()
    made["metadata"]["annotations"] = {"dtj.dev/version": version}
    return made


if __name__ == "__main__":
    main()
