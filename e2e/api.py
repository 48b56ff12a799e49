"""The few requests that setting up a cluster makes of its API server by itself; everything else is kubectl's."""

import base64
import json
import ssl
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

Json = dict[str, Any]


class Api:
    """Speaks as the user of a kubeconfig that carries its certificates in itself."""

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._server = cluster["server"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=authority)
        with tempfile.NamedTemporaryFile() as both:  # the ssl module takes a client's certificate from files alone
            both.write(base64.b64decode(user["client-certificate-data"]))
            both.write(base64.b64decode(user["client-key-data"]))
            both.flush()
            self._context.load_cert_chain(both.name)

    def text(self, path: str, *, method: str = "GET", body: object = None, kind: str = "application/json") -> str:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._server + path, data=data, method=method, headers={"Content-Type": kind})
        with urllib.request.urlopen(request, timeout=10, context=self._context) as answer:
            return str(answer.read().decode())

    def get(self, path: str) -> Json:
        answer: Json = json.loads(self.text(path))
        return answer

    def patch(self, path: str, operations: list[Json]) -> None:
        """A JSON patch."""
        self.text(path, method="PATCH", body=operations, kind="application/json-patch+json")

    def is_ready(self) -> bool:
        try:
            return self.text("/readyz") == "ok"
        except OSError:
            return False
