"""Checks of a training program and of its machine; each ends in a verdict and the next action."""
