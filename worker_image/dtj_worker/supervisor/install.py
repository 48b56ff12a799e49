"""The supervisor as one file that runs under any Python from 3.11 on: the whole package, training library included."""

import shutil
import tempfile
import zipapp
from pathlib import Path

import dtj_worker


def install(target: Path) -> None:
    """Write the zipapp, readable and executable for every user. From within a zipapp it copies itself."""
    package = Path(dtj_worker.__file__).parent
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(target.name + ".new")
    if package.parent.is_file():
        shutil.copyfile(package.parent, beside)
    else:
        # Staged, since zipapp takes whole folders, and the package's neighbours are none of its business.
        with tempfile.TemporaryDirectory() as stage:
            shutil.copytree(package, Path(stage, package.name), ignore=shutil.ignore_patterns("__pycache__"))
            zipapp.create_archive(stage, beside, "/usr/bin/env python3", "dtj_worker.supervisor.main:main")
    beside.chmod(0o755)
    beside.rename(target)
