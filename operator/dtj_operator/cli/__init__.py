"""The `dtj` command: run, local, validate, render, status, logs and the rest. Needs the extra `cli`."""
