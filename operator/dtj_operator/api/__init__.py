"""Records of what the Kubernetes API holds: spec, status, observed objects, names, faults. No decision, no I/O."""
