"""The CEL library, imported when it is first needed; the operator's image is without it."""

import functools
import sys
from types import ModuleType


@functools.cache
def library() -> ModuleType:
    # It imports its own command line, and with that a terminal toolkit: nine tenths of the time that the import takes.
    sys.modules.setdefault("cel.cli", ModuleType("cel.cli"))
    import cel  # noqa: PLC0415

    return cel
