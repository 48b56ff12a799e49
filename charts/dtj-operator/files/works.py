"""What `helm test` runs, in the operator's image: whether the operator that was installed is at work."""

import json
import ssl
import sys
import time
import urllib.error
import urllib.request
from datetime import datetime
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
PATIENCE_SECONDS = 60


def main() -> None:
    own, namespace, service = sys.argv[1:]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            look(own, namespace, service)
            return
        except (OSError, ValueError) as error:
            # A new install may not have a leader yet, nor its Service an address.
            if time.monotonic() > deadline:
                sys.exit(str(error))
            time.sleep(1)


def look(own: str, namespace: str, service: str) -> None:
    where = f"/namespaces/{namespace}" if namespace else ""
    ask(f"/apis/dtj.dev/v1alpha1{where}/distributedtrainingjobs?limit=1")
    lease = ask(f"/apis/coordination.k8s.io/v1/namespaces/{own}/leases/dtj-operator")["spec"]
    silent = time.time() - datetime.fromisoformat(lease["renewTime"]).timestamp()
    if not lease.get("holderIdentity") or silent > lease["leaseDurationSeconds"]:
        raise ValueError(f"nobody leads: the Lease {own}/dtj-operator was renewed {silent:.0f} s ago")
    with urllib.request.urlopen(f"{service}/readyz", timeout=5) as answer:
        role = answer.read().decode().strip()
    print("the API serves DistributedTrainingJobs, and the operator may list them")
    print(f"{lease['holderIdentity']} leads")
    print(f"{service} answers: {role}")


def ask(path: str) -> Any:
    headers = {"Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}"}
    request = urllib.request.Request(f"https://kubernetes.default.svc{path}", headers=headers)
    trust = ssl.create_default_context(cafile=ACCOUNT / "ca.crt")
    try:
        with urllib.request.urlopen(request, timeout=10, context=trust) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise ValueError(f"GET {path}: {error.code} {error.read().decode(errors='replace')}") from error


main()
