"""The operator's process has the same neighbours as its client."""

from tests.kube import conftest as neighbours

api = neighbours.api
client = neighbours.client
script = neighbours.script
server = neighbours.server
