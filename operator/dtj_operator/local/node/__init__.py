"""What a node does for its pods: processes and their trees, network addresses, volumes, environment, logs, status."""
