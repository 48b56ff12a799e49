"""Gang backends: they build group manifests, mark pods and read views. Pure; they never call the API."""
