"""A job becomes manifests: topology, TF_CONFIG, pods, other children. Pure; when to create them is for `decide`."""
