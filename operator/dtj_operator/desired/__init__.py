"""A job becomes manifests: topology, TF_CONFIG, pods, other children. Pure builders; whether and when to create is for `decide`."""
