"""Objects as text, for people and for other programs: JSON or YAML."""

from typing import Any, Literal

import msgspec
import yaml

Format = Literal["json", "yaml"]


def printed(body: dict[str, Any], output: Format) -> str:
    """One document that ends with its line."""
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(body), indent=2).decode() + "\n"
    text: str = yaml.dump(body, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text


class _Dumper(yaml.CSafeDumper):
    """Writes equal parts out each time, where YAML would refer back to the first."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
