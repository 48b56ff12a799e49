"""A read-only image registry over docker-archives, for no other is in reach: what is not in it does not exist."""

import hashlib
import json
import tarfile
import tempfile
import threading
from dataclasses import asdict, dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, urlsplit

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar"
CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Blob:
    """Some bytes of a file, and what they are."""

    path: str
    offset: int
    size: int
    kind: str


class Registry:
    """Answers what a container runtime asks on a pull; whose image it is said to be (docker.io, …) plays no part.

    What is in it lies in a folder, a link for each name and digest, so that any process can add to it.
    """

    def __init__(self, address: str, port: int, folder: Path) -> None:
        self.url = f"http://{address}:{port}"
        self._folder = folder
        self._address = (address, port)
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._server = ThreadingHTTPServer(self._address, self._handler())
        threading.Thread(target=self._server.serve_forever, name="registry", daemon=True).start()

    def stop(self) -> None:
        if self._server:
            self._server.shutdown()
            self._server.server_close()

    def add(self, archive: Path) -> None:
        """The images of a docker-archive, under the names it gives them; its layers are served from where they lie."""
        with tarfile.open(archive) as tar:
            members = {member.name: member for member in tar.getmembers()}
            for image in json.loads(read(tar, "manifest.json")):
                config = read(tar, image["Config"])
                layers = []
                for digest, name in zip(json.loads(config)["rootfs"]["diff_ids"], image["Layers"], strict=True):
                    layer = members[name]
                    self._note(digest, Blob(str(archive), layer.offset_data, layer.size, LAYER))
                    layers.append({"mediaType": LAYER, "size": layer.size, "digest": digest})
                said = {
                    "schemaVersion": 2,
                    "mediaType": MANIFEST,
                    "config": {"mediaType": CONFIG, "size": len(config), "digest": self._keep(config, CONFIG)},
                    "layers": layers,
                }
                manifest = self._keep(json.dumps(said).encode(), MANIFEST)
                for name in image["RepoTags"] or []:
                    self._write(repository(name), manifest.encode())

    def find(self, path: str) -> tuple[str, Blob] | None:
        """The digest and bytes of `/v2/<repository>/(manifests|blobs)/<tag or digest>`."""
        *words, last = path.removeprefix("/v2/").split("/")
        try:
            named = words[-1:] == ["manifests"] and not last.startswith("sha256:")
            digest = self._read("/".join([*words[:-1], last])).decode() if named else last
            return digest, Blob(**json.loads(self._read(digest)))
        except FileNotFoundError:
            return None

    def _keep(self, data: bytes, kind: str) -> str:
        digest = hashlib.sha256(data).hexdigest()
        path = self._write(digest, data)
        self._note(f"sha256:{digest}", Blob(str(path), 0, len(data), kind))
        return f"sha256:{digest}"

    def _note(self, digest: str, blob: Blob) -> None:
        self._write(digest, json.dumps(asdict(blob)).encode())

    def _write(self, name: str, data: bytes) -> Path:
        path = self._folder / quote(name, safe="")
        with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as whole:
            whole.write(data)
        return Path(whole.name).rename(path)

    def _read(self, name: str) -> bytes:
        return (self._folder / quote(name, safe="")).read_bytes()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(with_body=True)

            def do_HEAD(self) -> None:
                self.answer(with_body=False)

            def answer(self, *, with_body: bool) -> None:
                path = urlsplit(self.path).path
                found = registry.find(path)
                self.send_response(HTTPStatus.OK if found or path == "/v2/" else HTTPStatus.NOT_FOUND)
                if found is None:
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                digest, blob = found
                for name, value in (("Type", blob.kind), ("Length", str(blob.size))):
                    self.send_header(f"Content-{name}", value)
                self.send_header("Docker-Content-Digest", digest)
                self.end_headers()
                if with_body:
                    self.send(blob)

            def send(self, blob: Blob) -> None:
                with Path(blob.path).open("rb") as file:
                    file.seek(blob.offset)
                    left = blob.size
                    while left and (chunk := file.read(min(left, CHUNK_BYTES))):
                        self.wfile.write(chunk)
                        left -= len(chunk)

            def log_message(self, *_: object) -> None:
                """The runtime tells what it was refused."""

        return Handler


def repository(name: str) -> str:
    """Repository and tag as a runtime asks for them, `dtj/worker/latest`; no host, Docker's own in `library/`."""
    path, _, tag = name.rpartition(":") if ":" in name.rpartition("/")[2] else (name, "", "latest")
    first, _, rest = path.partition("/")
    if rest and (first == "localhost" or "." in first or ":" in first):
        path = rest
    return f"{path if '/' in path else f'library/{path}'}/{tag}"


def read(tar: tarfile.TarFile, name: str) -> bytes:
    found = tar.extractfile(name)
    if found is None:
        raise RuntimeError(f"{name} is no file in {tar.name!r}; is this a docker-archive?")
    return found.read()
