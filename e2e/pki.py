"""Certificates and kubeconfigs of a cluster: one authority, made by openssl when the cluster starts."""

import base64
import json
import secrets
import subprocess
from pathlib import Path

DAYS = "30"


class Authority:
    """Signs what the cluster's programs show each other; everything lies in one folder."""

    def __init__(self, folder: Path, server: str) -> None:
        self.folder = folder
        self.server = server
        folder.mkdir(parents=True, exist_ok=True)
        self.certificate = folder / "ca.crt"
        if self.certificate.exists():  # of a cluster that runs already
            return
        secret = self.key("ca")
        openssl("req", "-x509", "-new", "-key", secret, "-days", DAYS, "-subj", "/CN=e2e", "-out", self.certificate)

    def certify(self, name: str, subject: str, *, names: tuple[str, ...] = ()) -> tuple[Path, Path]:
        """Certificate and key, for the subject and, of a server, its names (`DNS:…`, `IP:…`)."""
        certificate, request = (self.folder / f"{name}.{end}" for end in ("crt", "csr"))
        secret = self.key(name)
        if certificate.exists():
            return certificate, secret
        wanted = ["-addext", f"subjectAltName={','.join(names)}"] if names else []
        openssl("req", "-new", "-key", secret, "-subj", subject, *wanted, "-out", request)
        openssl(
            *("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.folder / "ca.key", "-days", DAYS),
            *("-set_serial", f"0x1{secrets.token_hex(8)}", "-copy_extensions", "copy", "-out", certificate),
        )
        return certificate, secret

    def key(self, name: str) -> Path:
        """The private key of that name; on an elliptic curve, so that it takes milliseconds."""
        path = self.folder / f"{name}.key"
        if not path.exists():
            openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path)
        return path

    def kubeconfig(self, path: Path, subject: str, *, server: str | None = None) -> Path:
        """A kubeconfig that needs no other file, with a certificate of its own for the subject."""
        certificate, secret = self.certify(path.stem, subject)
        cluster = {"server": server or self.server, "certificate-authority-data": encoded(self.certificate)}
        user = {"client-certificate-data": encoded(certificate), "client-key-data": encoded(secret)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "e2e", "cluster": cluster}],
            "users": [{"name": path.stem, "user": user}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": path.stem}}],
            "current-context": "e2e",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=1))
        return path


def public(secret: Path, path: Path) -> Path:
    openssl("ec", "-in", secret, "-pubout", "-out", path)
    return path


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def openssl(*arguments: str | Path) -> None:
    command = ["openssl", *map(str, arguments)]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
