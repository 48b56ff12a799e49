"""The first process of a trainer container: it checks, starts, watches and ends the training program. Standard library only."""
