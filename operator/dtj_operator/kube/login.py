"""Who the operator is to the API server: a pod's service account or a kubeconfig, read by kopf's own helpers."""

import logging
import os
import ssl
from typing import Any

import kopf
import yaml

from dtj_operator.kube.http import Credentials

log = logging.getLogger(__name__)

TLS_FIELDS = (
    "ca_path",
    "ca_data",
    "insecure",
    "certificate_path",
    "certificate_data",
    "private_key_path",
    "private_key_data",
)


class NoLogin(Exception):
    """There is no way to reach an API server; the message says what was tried."""


class Login:
    """Reads the credentials anew at every call, since tokens rotate. kopf and our client are served the same ones."""

    def __init__(self) -> None:
        self._settings = kopf.OperatorSettings()
        self._tls: tuple[tuple[Any, ...], ssl.SSLContext] | None = None

    def __call__(self) -> Credentials:
        """The credentials for `HttpClient`; raises NoLogin."""
        info = self.connection()
        tls = self._context(info) if info.server.startswith("https:") else True
        return Credentials(info.server, info.as_http_headers(), tls, info.proxy_url)

    def connection(self) -> kopf.ConnectionInfo:
        """The credentials for kopf. A kubeconfig that was named goes before the pod's own account; raises NoLogin."""
        try:
            info = None if os.environ.get("KUBECONFIG") else kopf.login_with_service_account(settings=self._settings)
            info = info or kopf.login_with_kubeconfig(settings=self._settings)
            if info and not (info.token or info.username or info.certificate_path or info.certificate_data):
                # Tokens by exec or OIDC take the official client, which the operator's image doesn't carry.
                info = kopf.login_via_client(settings=self._settings, logger=log) or info
        except (kopf.LoginError, yaml.YAMLError, KeyError, OSError, ValueError) as error:
            raise NoLogin(f"the kubeconfig {os.environ.get('KUBECONFIG', '')} can't be used: {error!r}") from error
        if info is None:
            raise NoLogin("no service account of a pod and no kubeconfig; name one by --kubeconfig or KUBECONFIG")
        return info

    def _context(self, info: kopf.ConnectionInfo) -> ssl.SSLContext:
        """Loading certificates takes milliseconds, so it is done once for the same ones."""
        wanted = tuple(getattr(info, name) for name in TLS_FIELDS)
        if self._tls is None or self._tls[0] != wanted:
            self._tls = (wanted, info.as_ssl_context())
        return self._tls[1]
