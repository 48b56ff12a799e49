"""A cluster that somebody else brought up and KUBECONFIG names: its machine is out of reach, its images are there."""

import json
from pathlib import Path

from e2e.kubectl import Kubectl


class Given:
    def __init__(self, kubeconfig: Path) -> None:
        if not kubeconfig.exists():
            raise RuntimeError(f"KUBECONFIG names {kubeconfig}, and there is no such file")
        self.kubeconfig = kubeconfig
        self.kubectl = Kubectl(kubeconfig)
        said = json.loads(self.kubectl("version", "--output=json"))
        self.version = str(said["serverVersion"]["gitVersion"]).removeprefix("v")
