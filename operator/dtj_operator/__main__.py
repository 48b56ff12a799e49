"""`python -m dtj_operator` starts the operator."""

import sys

from dtj_operator.manager.main import main

if __name__ == "__main__":
    sys.exit(main())
