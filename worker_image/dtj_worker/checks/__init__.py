"""Checks of a training program and of its machine: replicas, baseline, memory, scaling. Each ends in a verdict and the next action."""
