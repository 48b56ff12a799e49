"""`python -m dtj_operator` starts the operator."""

import sys

# kopf imports the Kubernetes client wherever it is installed, as the embedded cluster has it: a third of our start.
sys.modules["kubernetes"] = None  # type: ignore[assignment]

from dtj_operator.manager.main import main  # noqa: E402 - kopf comes with it

if __name__ == "__main__":
    sys.exit(main())
