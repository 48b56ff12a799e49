"""The first process of a trainer container: checks, starts, watches and ends the program. Standard library only."""
