"""What images promise before any is built: their locks, their version, what `make images` asks of which builder."""

import re
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("flavour", "package"), [("cpu", "tensorflow-cpu"), ("gpu", "tensorflow"), ("tpu", "tensorflow-tpu")]
)
def test_a_flavour_has_one_tensorflow(flavour: str, package: str) -> None:
    lock = (ROOT / f"requirements/worker-{flavour}.txt").read_text()
    elsewhere = "platform_machine != 'x86_64' or sys_platform != 'linux'"
    pinned = [line for line in re.findall(r"^tensorflow\S*==.*", lock, re.MULTILINE) if elsewhere not in line]
    assert [line.partition("==")[0] for line in pinned] == [package]


@pytest.mark.parametrize("name", ["build", "operator", "worker-cpu", "worker-gpu", "worker-tpu"])
def test_every_package_of_a_lock_has_its_hashes(name: str) -> None:
    lines = (ROOT / f"requirements/{name}.txt").read_text().splitlines()
    packages = [line for line in lines if re.match(r"[a-z0-9]", line)]
    hashed = [line for line, below in pairwise(lines) if "--hash=" in below and "==" in line]
    assert hashed == packages
    assert packages


@pytest.mark.parametrize("file", ["Dockerfile", "worker_image/Dockerfile"])
def test_a_dockerfile_says_the_version(file: str) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nARG VERSION={version}\n" in (ROOT / file).read_text()


def make_images(builders: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools/images.py"), *arguments]
    return subprocess.run(
        command, env={"PATH": f"{builders}:/usr/bin:/bin"}, text=True, capture_output=True, check=False
    )


def builder(folder: Path, name: str, *, works: bool) -> None:
    script = folder / name
    script.write_text(f'#!/bin/sh\n[ "$1" = build ] && echo {name} "$@" && exit\nexit {0 if works else 1}\n')
    script.chmod(0o755)


def test_a_docker_without_its_engine_is_no_builder(tmp_path: Path) -> None:
    builder(tmp_path, "docker", works=False)
    builder(tmp_path, "podman", works=True)
    done = make_images(tmp_path, "--flavours=gpu", "--prefix=here/ml", "--secret=id=pip,src=pip.conf")
    assert done.returncode == 0, done.stderr
    operator, worker = [line for line in done.stdout.splitlines() if line.startswith("podman build ")]
    assert "--file Dockerfile " in operator
    assert "--secret=id=pip,src=pip.conf" in operator
    assert "--build-arg=FLAVOUR=gpu" in worker
    assert "--file worker_image/Dockerfile " in worker
    told = "here/ml/operator:0.1.0, here/ml/operator:latest, here/ml/worker:0.1.0-gpu, here/ml/worker:latest-gpu"
    assert done.stdout.splitlines()[-1] == f"make images: podman built {told}"


def test_what_an_install_asks_for_is_what_is_built(tmp_path: Path) -> None:
    builder(tmp_path, "buildah", works=True)
    built = set(re.findall(r"dtj/\S+:[\w.-]+", make_images(tmp_path).stdout))
    installed = (ROOT / "install.yaml").read_text()
    wanted = re.findall(r"(?:image: |--supervisor-image=)[\"']?([\w./:-]+)", installed)
    assert wanted
    assert built.issuperset(wanted)


def test_a_machine_without_a_builder_gets_one_line(tmp_path: Path) -> None:
    for name in ("docker", "podman", "buildah"):
        builder(tmp_path, name, works=False)
    done = make_images(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("make images: no builder works here")
    assert len(done.stderr.splitlines()) == 1


def test_a_flavour_that_is_none_is_refused(tmp_path: Path) -> None:
    done = make_images(tmp_path, "--flavours=cpu,cuda")
    assert done.returncode == 2
    assert "--flavours: cuda is none of cpu, gpu, tpu, supervisor" in done.stderr
