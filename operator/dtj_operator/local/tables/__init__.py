"""What `kubectl get` prints: rows and columns that the server makes, as kube-apiserver does for each kind."""
