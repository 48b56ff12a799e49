"""`make crd`: what is made of the types in `dtj_operator.api`: definition (crds/, chart), pages of docs/."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import yaml

from dtj_operator.api.crd import crd
from tools import reference

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    for path, text in made().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def made() -> Mapping[Path, str]:
    """Each file with what it must hold; a test compares."""
    return {
        ROOT / "crds" / f"{crd()['metadata']['name']}.yaml": definition(),
        ROOT / "charts" / "dtj-operator" / "files" / "crd.yaml": definition(),
        ROOT / "docs" / "reference.md": reference.resource(),
        ROOT / "docs" / "reasons.md": reference.reasons(),
    }


def definition() -> str:
    """The CustomResourceDefinition as YAML, with the version by which the chart knows an older one from a newer."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    made = crd()
    made["metadata"]["annotations"] = {"dtj.dev/version": version}
    document = yaml.safe_dump(made, sort_keys=False, allow_unicode=True, width=120)
    return f"# Made by `make crd` of the types in dtj_operator/api.\n{document}"


if __name__ == "__main__":
    main()
