"""Custom resources: their definitions, and the kinds and rules that come from them."""
