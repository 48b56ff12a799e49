"""The Kubernetes API and the status port of pods: client, watches, store, apply, Lease. Decides nothing."""
