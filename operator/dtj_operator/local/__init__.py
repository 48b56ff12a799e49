"""The embedded cluster: an API server in memory, and a kubelet of processes. The operator never imports it."""
