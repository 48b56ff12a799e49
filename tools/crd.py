"""`make crd`: the CustomResourceDefinition as a file in crds/. What it says comes out of `dtj_operator.api.crd`."""

from pathlib import Path

import yaml

from dtj_operator.api.crd import crd

FOLDER = Path(__file__).resolve().parent.parent / "crds"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    path().write_text(text())


def path() -> Path:
    """Where the definition stands, under its own name."""
    return FOLDER / f"{crd()['metadata']['name']}.yaml"


def text() -> str:
    """What the file must hold; a test compares."""
    definition = yaml.safe_dump(crd(), sort_keys=False, allow_unicode=True, width=120)
    return f"# Made by `make crd` of the types in dtj_operator/api.\n{definition}"


if __name__ == "__main__":
    main()
