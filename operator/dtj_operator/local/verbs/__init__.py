"""What each verb does to the store, with kube-apiserver's semantics and without any transport."""
