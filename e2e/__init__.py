"""The real Kubernetes on which the scenarios run: its programs, its nodes, the namespace in which all of it lives."""
