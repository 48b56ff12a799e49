"""etcd, API server, controller-manager, scheduler and CoreDNS: plain processes at the control plane's address."""

import json
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from e2e.api import Api
from e2e.daemon import Daemon, wait
from e2e.machine import ADDRESS
from e2e.pki import Authority, public

ETCD = "http://127.0.0.1:2379"
SERVER = f"https://{ADDRESS}:6443"
SERVICES = "10.96.0.0/16"
ADMIN = "/O=system:masters/CN=admin"
DOMAIN = "cluster.local"

AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        # Kubernetes' own: most of the requests, and nobody asks about their rights.
        {"level": "None", "userGroups": ["system:nodes", "system:serviceaccounts:kube-system"]},
        {"level": "None", "users": ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"]},
        {"level": "None", "users": ["system:kube-proxy", "coredns", "kube-router"]},
        {"level": "Metadata"},
    ],
}


@dataclass(frozen=True)
class Programs:
    """The folders of the programs' families."""

    kubernetes: Path
    etcd: Path
    coredns: Path


class ControlPlane:
    def __init__(self, folder: Path, programs: Programs, feature_gates: str) -> None:
        self.folder = folder
        self.programs = programs
        self.audit_log = folder / "log" / "audit.jsonl"
        self.authority = Authority(folder / "pki", SERVER)
        self.kubeconfig = self.authority.kubeconfig(folder / "admin.kubeconfig", ADMIN)
        self.api = Api(self.kubeconfig)
        self._gates = ["--feature-gates", feature_gates] if feature_gates else []
        self._etcd = self._daemon("etcd", self._etcd_command())
        self._api_server = self._daemon("kube-apiserver", self._api_server_command())
        self._others = [
            self._daemon("kube-controller-manager", self._controller_manager_command()),
            self._daemon("kube-scheduler", self._scheduler_command()),
            self._daemon("coredns", self._coredns_command()),
        ]

    def start(self) -> None:
        self.start_etcd()
        self.start_api_server()
        for daemon in self._others:
            daemon.start()

    def start_etcd(self) -> None:
        self._etcd.start()
        wait("etcd is healthy", etcd_is_healthy, 60, self._etcd)

    def start_api_server(self) -> None:
        self._api_server.start()
        wait("the API server is ready", self.api.is_ready, 120, self._api_server)

    def restart_api_server(self) -> None:
        self._api_server.stop(seconds=5)  # it would wait a minute for watchers to go
        self.start_api_server()

    def restart_etcd(self) -> None:
        self._etcd.stop()
        self.start_etcd()
        wait("the API server is ready again", self.api.is_ready, 120, self._etcd, self._api_server)

    def await_first_account(self) -> None:
        """No pod can be made in a namespace before the controller-manager has given it an account."""

        def is_there() -> bool:
            try:
                return bool(self.api.get("/api/v1/namespaces/default/serviceaccounts/default"))
            except OSError:
                return False

        wait("the default namespace has its account", is_there, 120, *self._others)

    def stop(self) -> None:
        for daemon in (*reversed(self._others), self._api_server, self._etcd):
            daemon.stop()

    def check(self) -> None:
        for daemon in (self._etcd, self._api_server, *self._others):
            daemon.check()

    def _daemon(self, name: str, command: list[str | Path]) -> Daemon:
        return Daemon(name, command, self.folder / "log" / f"{name}.log")

    def _etcd_command(self) -> list[str | Path]:
        return [
            # The module's own name; nothing here outlives the machine, so no write waits for the disk.
            *(self.programs.etcd / "server", "--data-dir", self.folder / "etcd", "--unsafe-no-fsync"),
            *("--listen-client-urls", ETCD, "--advertise-client-urls", ETCD),
            *("--listen-peer-urls", "http://127.0.0.1:2380"),
        ]

    def _api_server_command(self) -> list[str | Path]:
        pki = self.authority
        first_service = "10.96.0.1"
        names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{DOMAIN}"]
        certificate, key = pki.certify(
            "apiserver",
            "/CN=kube-apiserver",
            names=(
                *(f"IP:{address}" for address in (ADDRESS, "127.0.0.1", first_service)),
                *(f"DNS:{name}" for name in ("localhost", *names)),
            ),
        )
        to_kubelets = pki.certify("kubelet-client", "/O=system:masters/CN=apiserver-kubelet-client")
        tokens = self._token_key()
        return [
            *(self.programs.kubernetes / "kube-apiserver", "--etcd-servers", ETCD, "--bind-address", "0.0.0.0"),
            *("--advertise-address", ADDRESS, "--secure-port", "6443", "--allow-privileged"),
            *("--tls-cert-file", certificate, "--tls-private-key-file", key, "--client-ca-file", pki.certificate),
            *("--requestheader-client-ca-file", pki.certificate, "--requestheader-allowed-names", "front"),
            *("--requestheader-username-headers", "X-Remote-User", "--requestheader-group-headers", "X-Remote-Group"),
            *("--requestheader-extra-headers-prefix", "X-Remote-Extra-"),
            *("--service-account-key-file", public(tokens, pki.folder / "tokens.pub")),
            *("--service-account-signing-key-file", tokens),
            *("--service-account-issuer", f"https://kubernetes.default.svc.{DOMAIN}"),
            *("--service-cluster-ip-range", SERVICES),
            *("--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction"),
            *("--kubelet-client-certificate", to_kubelets[0], "--kubelet-client-key", to_kubelets[1]),
            *("--kubelet-preferred-address-types", "InternalIP", "--runtime-config", "api/all=true"),
            *("--audit-policy-file", self._audit_policy(), "--audit-log-path", self.audit_log),
            *("--audit-log-maxsize", "4000"),
            *self._gates,
        ]

    def _controller_manager_command(self) -> list[str | Path]:
        config = self.authority.kubeconfig(self.folder / "kcm.kubeconfig", "/CN=system:kube-controller-manager")
        return [
            *(self.programs.kubernetes / "kube-controller-manager", "--kubeconfig", config),
            *("--authentication-kubeconfig", config, "--authorization-kubeconfig", config),
            *("--service-account-private-key-file", self._token_key(), "--root-ca-file", self.authority.certificate),
            *("--use-service-account-credentials", "--leader-elect=false"),
            *self._gates,
        ]

    def _scheduler_command(self) -> list[str | Path]:
        config = self.authority.kubeconfig(self.folder / "scheduler.kubeconfig", "/CN=system:kube-scheduler")
        return [
            *(self.programs.kubernetes / "kube-scheduler", "--kubeconfig", config, "--leader-elect=false"),
            *("--authentication-kubeconfig", config, "--authorization-kubeconfig", config),
            *self._gates,
        ]

    def _coredns_command(self) -> list[str | Path]:
        config = self.authority.kubeconfig(self.folder / "dns.kubeconfig", "/O=system:masters/CN=coredns")
        rules = self.folder / "Corefile"
        rules.write_text(
            f".:53 {{\n  bind {ADDRESS}\n  errors\n"
            f"  kubernetes {DOMAIN} in-addr.arpa {{\n    kubeconfig {config}\n    ttl 1\n  }}\n}}\n"
        )
        return [self.programs.coredns / "coredns", "-conf", rules]

    def _token_key(self) -> Path:
        return self.authority.key("tokens")

    def _audit_policy(self) -> Path:
        path = self.folder / "audit.json"
        path.write_text(json.dumps(AUDIT))
        return path


def etcd_is_healthy() -> bool:
    try:
        with urllib.request.urlopen(f"{ETCD}/health", timeout=5) as answer:
            return b'"true"' in answer.read()
    except OSError:
        return False
