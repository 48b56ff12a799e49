"""What a built-in object must be to be let in: defaults, checks, limits and quotas, as kube-apiserver has them."""
