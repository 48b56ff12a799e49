"""One CEL rule: its compiled program, which parts of the object it reads, and the values it is run with."""

import functools
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from dtj_operator.api import cel

if TYPE_CHECKING:
    from cel import Context, Program

Json = dict[str, Any]
Path = tuple[str, ...]
# What is read of a value: of each field what is read of it, or None for all.
Needs = dict[str, "Needs | None"]

# A variable and the fields that follow it; a name with a parenthesis behind it is a method.
_CHAIN = re.compile(r"(?<![\w.])(?P<variable>self|oldSelf)(?P<fields>(?:\.[A-Za-z_]\w*\b(?!\s*\())*)")


class Rule(msgspec.Struct, frozen=True):
    """One entry of `x-kubernetes-validations`. `reads` are the fields that it looks at, `needs` the same as a tree."""

    given: Json
    uses_old: bool
    reads: frozenset[Path]
    needs: Any

    @property
    def told(self) -> str:
        """How an error names the rule."""
        return str(self.given.get("message") or self.given["rule"]).strip()

    def holds(self, context: "Context") -> bool:
        """Raises what CEL raises."""
        return program(self.given["rule"]).execute(context) is True


def rule_of(given: Json) -> Rule:
    text = given.get("rule", "") + "\n" + given.get("messageExpression", "")
    chains = list(_CHAIN.finditer(text))
    reads = frozenset(tuple(chain["fields"].split(".")[1:]) for chain in chains)
    return Rule(given, any(chain["variable"] == "oldSelf" for chain in chains), reads, needs_of(reads))


@functools.cache
def program(text: str) -> "Program":
    """The compiled expression; ValueError for what is no CEL."""
    compiled: Program = cel.library().compile(text)
    return compiled


def context_of(variables: Json) -> "Context":
    """Variables converted for CEL once, however many rules read them."""
    context: Context = cel.library().Context(variables=variables)
    return context


def needs_of(reads: Iterable[Path]) -> Needs | None:
    """Paths as a tree; None where a whole value is read."""
    tree: dict[str, set[Path]] = {}
    for path in reads:
        if not path:
            return None
        tree.setdefault(path[0], set()).add(path[1:])
    return {name: needs_of(rest) for name, rest in tree.items()}


def picked(value: Any, needs: Needs | None) -> Any:
    """The value with no more in it than is read: converting a whole job for each rule would cost milliseconds."""
    if needs is None or not isinstance(value, dict):
        return value
    return {name: picked(value[name], below) for name, below in needs.items() if name in value}
