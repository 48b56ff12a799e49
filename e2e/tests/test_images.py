"""What the images promise: anybody starts them, read-only; they are small, and hold nothing of their maker."""

import json
import shutil
import subprocess
import tarfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from e2e import images
from e2e.machine import ROOT

Json = dict[str, Any]
Archives = dict[str, Path]
Run = Callable[..., str]
Record = Callable[[str, object], None]
OPERATOR, SUPERVISOR, _ = images.SMALL
DIGITS, FOREIGN = "dtj/digits:latest", "dtj/foreign:latest"
"""The worker and TensorFlow, each with the same example on top: the images that are made of theirs."""
pytestmark = pytest.mark.machine


@pytest.fixture(scope="module")
def archives() -> Archives:
    """Those with TensorFlow where they are built; for these tests alone they would take too long."""
    return images.archives([*images.SMALL, *(name for name in (DIGITS, FOREIGN) if images.archive(name).exists())])


@pytest.fixture(params=[*images.SMALL, DIGITS])
def name(request: pytest.FixtureRequest, archives: Archives) -> str:
    if request.param not in archives:
        pytest.skip(f"{request.param} is not built: start with --image={request.param}")
    return str(request.param)


def read(file: Path) -> tuple[list[str], Json]:
    """The layers and the configuration of an image."""
    with tarfile.open(file) as archive:
        (manifest,) = json.load(member(archive, "manifest.json"))
        return manifest["Layers"], json.load(member(archive, manifest["Config"]))


def member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    found = archive.extractfile(name)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def roots(archives: Archives, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """The root file system of each image, read-only but for /tmp, as in a restricted pod."""
    # In memory, for TensorFlow's files would take a minute to be deleted.
    unpacked = tmp_path_factory.mktemp("layers")
    mount("tmpfs", unpacked)
    made = {name: tmp_path_factory.mktemp("root") for name in archives if name != FOREIGN}
    for name, root in made.items():
        layers, config = read(archives[name])
        digests = config["rootfs"]["diff_ids"]
        with tarfile.open(archives[name]) as archive:
            folders = [unpacked / digest.removeprefix("sha256:")[:16] for digest in digests]
            for layer, folder in zip(layers, folders, strict=True):
                if not folder.exists():
                    folder.mkdir()
                    folder.chmod(0o755)
                    unpack(member(archive, layer), folder)
        mount("overlay", root, "lowerdir=" + ":".join(map(str, reversed(folders))))
        mount("tmpfs", root / "tmp", "mode=1777")
    yield made
    for place in (*made.values(), unpacked):
        subprocess.run(["umount", "--recursive", str(place)], check=True)


def mount(kind: str, place: Path, options: str = "rw") -> None:
    subprocess.run(["mount", "--types", kind, "--options", options, "none", str(place)], check=True)


def unpack(layer: IO[bytes], folder: Path) -> None:
    command = ["tar", "--extract", "--directory", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.stdin
        shutil.copyfileobj(layer, process.stdin, 1 << 20)
    assert process.returncode == 0


@pytest.fixture
def run(archives: Archives, roots: dict[str, Path]) -> Run:
    """What a command prints, in an image, as somebody; by default the entry point, as the image's own user."""

    def ran(name: str, *words: str, entry: tuple[str, ...] = (), user: str = "") -> str:
        told = read(archives[name])[1]["config"]
        command = ["env", "--ignore-environment", *told["Env"], "chroot", f"--userspec={user or told['User']}"]
        command += [str(roots[name]), *(entry or told["Entrypoint"]), *words]
        done = subprocess.run(command, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return ran


def test_an_image_starts_as_its_user_and_as_any_other(name: str, run: Run) -> None:
    for user in ("", "12345:0"):
        assert "usage: " in run(name, "--help", user=user)


def test_an_image_says_what_it_is_and_runs_as_a_number(name: str, archives: Archives) -> None:
    told = read(archives[name])[1]["config"]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert told["Labels"]["org.opencontainers.image.version"] == version
    assert told["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert told["Labels"]["org.opencontainers.image.title"].startswith("dtj ")
    user, _, group = told["User"].partition(":")
    assert int(user) > 0
    assert int(group) > 0


def test_the_operator_carries_nothing_to_build_or_install_with(run: Run) -> None:
    look = (
        "import importlib.util as u, shutil as s; print([u.find_spec(m) for m in ('pip', 'setuptools')], s.which('cc'))"
    )
    assert run(OPERATOR, "-c", look, entry=("python",)) == "[None, None] None\n"


def test_the_operator_has_its_bytecode(run: Run) -> None:
    look = "import kopf, os, dtj_operator.manager.main as m; print(*(os.path.exists(x.__cached__) for x in (m, kopf)))"
    assert run(OPERATOR, "-c", look, entry=("python",)) == "True True\n"


def test_the_operator_is_under_200_mb_beyond_its_base(archives: Archives, record: Record) -> None:
    own = beyond(archives[OPERATOR], archives[SUPERVISOR])
    record("bytes of the operator beyond its base", sum(own.values()))
    assert sum(own.values()) < 200e6


def test_the_supervisor_is_under_a_megabyte_beyond_its_base(archives: Archives, record: Record) -> None:
    own = beyond(archives[SUPERVISOR], archives[OPERATOR])
    record("bytes of the supervisor beyond its base", sum(own.values()))
    assert sum(own.values()) < 1e6


@pytest.mark.parametrize("name", [DIGITS], indirect=True)
def test_the_worker_is_under_100_mb_beyond_tensorflow(name: str, archives: Archives, record: Record) -> None:
    if FOREIGN not in archives:
        pytest.skip(f"{FOREIGN} is not built: start with --image={FOREIGN}")
    own = beyond(archives[name], archives[FOREIGN])
    (example,) = (number for number, step in enumerate(own) if "scikit-learn" in step)
    worker = list(own.values())[:example]
    record("bytes of the worker beyond TensorFlow", sum(worker))
    assert 0 < sum(worker) < 100e6


@pytest.fixture
def record(record_testsuite_property: Record) -> Record:
    return record_testsuite_property


def beyond(file: Path, other: Path) -> dict[str, int]:
    """The layers that an image does not share with another on the same base: the steps that made them, and bytes."""
    (layers, config), shared = read(file), read(other)[1]["rootfs"]["diff_ids"]
    steps = [step["created_by"] for step in config["history"] if not step.get("empty_layer")]
    made = zip(steps, layers, config["rootfs"]["diff_ids"], strict=True)
    with tarfile.open(file) as archive:
        own = {step: archive.getmember(layer).size for step, layer, digest in made if digest not in shared}
    assert 0 < len(own) < len(layers)
    return own


def test_nothing_that_pip_was_told_is_in_an_image(name: str, archives: Archives, roots: dict[str, Path]) -> None:
    found = [*roots[name].glob("etc/pip.conf"), *roots[name].glob("run/secrets/*"), *roots[name].glob("root/.*/pip/*")]
    assert [path for path in found if path.read_bytes()] == []
    assert not any("PIP" in variable for variable in read(archives[name])[1]["config"]["Env"])


def test_the_supervisor_writes_itself_where_a_foreign_image_finds_it(run: Run) -> None:
    run(SUPERVISOR, "--install", "/tmp/shared/dtj-worker.pyz")
    assert "usage: dtj-worker" in run(
        SUPERVISOR, "/tmp/shared/dtj-worker.pyz", "--help", entry=("python3",), user="7:7"
    )


def test_a_changed_source_is_another_image(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = {name: images.key(name) for name in images.RECIPES}
    for file in {path for recipe in images.RECIPES.values() for path in sources(recipe)}:
        copy = tmp_path / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    monkeypatch.setattr(images, "ROOT", tmp_path)
    assert {name: images.key(name) for name in images.RECIPES} == before
    with (tmp_path / "worker_image/dtj_worker/codec.py").open("a") as source:
        source.write("# another line\n")
    changed = {name for name in images.RECIPES if images.key(name) != before[name]}
    assert changed == {*images.RECIPES} - {"dtj/tensorflow:cpu", "dtj/foreign:latest"}


def sources(recipe: images.Recipe) -> list[Path]:
    return [ROOT / recipe.file, *images.files_of(recipe)]
