"""`python -m dtj_worker.training.run package.module:function [arguments]`: a program that is a function."""

import importlib
import sys

from dtj_worker.training.context import context


def main(words: list[str]) -> None:
    """Import the module and call its function with the context; the arguments are its `sys.argv[1:]`."""
    module, _, function = words[0].partition(":")
    sys.argv = words
    getattr(importlib.import_module(module), function)(context())


if __name__ == "__main__":
    main(sys.argv[1:])
