"""The embedded cluster: an API server in memory, and a kubelet that runs containers as local processes. The operator never imports it."""
