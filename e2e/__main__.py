"""`python -m e2e`: a real Kubernetes for a person (`cluster`), for some tests (`test`), for all of them (`suite`)."""

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from e2e import commands, images, machine, packages, programs, rights, suite
from e2e.chart import Helm, program
from e2e.cluster import Options, cluster
from e2e.survey import Survey

VOLUMES = 20
"""That a person's cluster has for claims."""


def main() -> int:
    arguments, rest = parser().parse_known_args()
    if rest and arguments.what != "test":
        parser().error(f"what is {' '.join(rest)}?")
    try:
        return int(arguments.run(arguments, rest))
    except (RuntimeError, OSError) as error:
        print(f"e2e: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m e2e", description=__doc__)
    verbs = top.add_subparsers(dest="what", required=True)
    named = f"for all nodes, the file of a docker-archive or a name: {', '.join(images.RECIPES)}"
    of_both = argparse.ArgumentParser(add_help=False)
    of_both.add_argument("--nodes", type=int, default=3, help="how many; default: 3")
    of_both.add_argument("--gpus", type=int, default=4, help="of each node; they are only said to be there; default: 4")
    of_both.add_argument("--feature-gates", default="", help="of the whole cluster, as the API server takes them")
    of_both.add_argument("--image", action="append", default=[], help=named)

    person = verbs.add_parser("cluster", help="bring a cluster up, until Ctrl-C", parents=[of_both])
    person.add_argument("--kubernetes", choices=sorted(programs.KUBERNETES), default="1.37")
    person.add_argument("--operator", action="store_true", help="with the operator of this tree, by its chart")
    person.set_defaults(run=for_a_person)

    tests = verbs.add_parser("test", help="run pytest on a cluster, with what else is given", parents=[of_both])
    tests.add_argument("--kubernetes", choices=sorted(programs.KUBERNETES), action="append", help="once or more")
    tests.set_defaults(run=for_tests)

    whole = verbs.add_parser("suite", help="run the tests on each version, on clusters of their own")
    whole.add_argument("--all", action="store_true", help="every test on every version, and docs/scenarios.md of it")
    whole.set_defaults(run=for_everyone)

    built = verbs.add_parser("build", help="build programs and images of the cluster, once for this machine")
    built.add_argument("name", nargs="+", help="a folder of e2e/programs, or an image")
    built.set_defaults(run=for_later)

    beside = verbs.add_parser("join", help="run a command in the namespace of the cluster that is up")
    beside.add_argument("command", nargs=argparse.REMAINDER)
    beside.set_defaults(run=lambda arguments, _: machine.join(arguments.command or ["bash"]))
    return top


def for_a_person(arguments: argparse.Namespace, _: list[str]) -> int:
    version = arguments.kubernetes
    if machine.FOLDER not in os.environ:
        return enter(version, [*arguments.image, images.OPERATOR, images.SUPERVISOR], sys.argv[1:])
    try:
        with cluster(options(arguments, version), machine.folder(), say) as up, up.door() as kubeconfig:
            up.offer_volumes(VOLUMES)
            if arguments.operator:
                Helm(up.kubeconfig).install()
                say("the operator is there: namespace dtj-system")
            say(f"  export KUBECONFIG={kubeconfig}")
            say(f"  export PATH={program().parent}:{Path(sys.executable).parent}:$PATH   # helm, kubectl, dtj")
            say(f"  {sys.executable} -m e2e join COMMAND   # where pods, nodes and services can be reached")
            say(f"logs are in {up.folder / 'log'}; Ctrl-C ends it")
            signal.pause()
    except KeyboardInterrupt:
        pass
    say("the cluster is gone")
    return 0


def for_tests(arguments: argparse.Namespace, rest: list[str]) -> int:
    """On each version in turn; on the cluster of KUBECONFIG where it is set."""
    tests = rest or ["e2e/tests"]
    versions = arguments.kubernetes or ["1.37"]
    if machine.FOLDER in os.environ:
        # Up before pytest begins: a first import of images takes longer than any test may.
        with cluster(options(arguments, versions[-1]), machine.folder(), say) as up:
            code = commands.foreground([*suite.pytest(), *tests])
            lacked = rights.refused(rights.calls(up.audit_log))
            for line in lacked:
                say(f"the operator's rights, by the audit log of all tests: {line}")
            return code or bool(lacked)
    if "KUBECONFIG" in os.environ:
        return suite.on_given(tests)
    wanted = [*arguments.image, *images.SMALL]
    return max(enter(version, wanted, [*sys.argv[1:], f"--kubernetes={version}"], suite.PLAYED) for version in versions)


def for_everyone(arguments: argparse.Namespace, _: list[str]) -> int:
    parts = suite.ALL if arguments.all else suite.USUAL
    if "KUBECONFIG" in os.environ:
        return suite.on_given(parts[0].tests)
    for flavour in images.DEVICES:
        images.resolve(flavour, say)
    code = suite.run(parts, in_cluster, say)
    return max(code, suite.table(say)) if arguments.all else code


def for_later(arguments: argparse.Namespace, _: list[str]) -> int:
    # A SystemExit takes what is half made away.
    with commands.handling({signal.SIGTERM: lambda number, _: sys.exit(128 + number)}):
        images.archives([name for name in arguments.name if name in images.RECIPES], say)
        for family in (name for name in arguments.name if name not in images.RECIPES):
            programs.build(family, say)
    return 0


def in_cluster(part: suite.Part, after: suite.Part | None, tests: Sequence[str]) -> int:
    command = ["test", f"--kubernetes={part.kubernetes}", *tests]
    later = (programs.KUBERNETES[after.kubernetes],) if after else ()
    return enter(part.kubernetes, part.images, command, part.programs, later)


def options(arguments: argparse.Namespace, version: str) -> Options:
    """Inside, images are files: what had only a name, `enter` has added by its file."""
    archives = dict.fromkeys(Path(image) for image in arguments.image if Path(image).is_absolute())
    return Options(version, arguments.nodes, arguments.gpus, arguments.feature_gates, images=tuple(archives))


def enter(
    version: str,
    wanted: Sequence[str],
    arguments: list[str],
    beyond: Sequence[str] = (),
    later: Sequence[str] = (),
) -> int:
    """The same once more, inside. Programs for `later` are built in the meantime."""
    check(wanted)
    packages.install(say)  # those that take the survey are among them
    before = Survey.now()
    archives = prepare(version, wanted, beyond)
    command = [sys.executable, "-m", "e2e", *arguments, *(f"--image={file}" for file in archives)]
    with contextlib.ExitStack() as stack:
        for family in later:
            stack.enter_context(programs.beside(family, say))
        return machine.run(command, say, before)


def check(wanted: Sequence[str]) -> None:
    """Before minutes of building."""
    machine.place_of_run()
    for name in wanted:
        if name not in images.RECIPES and not Path(name).is_file():
            known = ", ".join(images.RECIPES)
            raise RuntimeError(f"--image={name}: no such file, and no such image; there are {known}")


def prepare(version: str, wanted: Sequence[str], beyond: Sequence[str]) -> list[Path]:
    """What takes long the first time, and the network, which the namespace has not; the images' archives."""
    with being_built([name for name in wanted if name in images.RECIPES and not images.archive(name).exists()]):
        for family in (programs.KUBERNETES[version], "etcd", "coredns", "kube-router", "pause", "helm", *beyond):
            programs.build(family, say)
    return files(wanted)


@contextlib.contextmanager
def being_built(names: Sequence[str]) -> Iterator[None]:
    """Images, in the meantime: they and compilers wait for disk, network and single steps at different times."""
    if not names:
        yield
        return
    with commands.beside((sys.executable, "-m", "e2e", "build", *names)) as building:
        yield
        building.wait()  # If it fails, who needs them tries again, and says why.


def files(wanted: Sequence[str]) -> list[Path]:
    """A docker-archive each; by name, it is built where it is not there yet."""
    named = images.archives([name for name in wanted if name in images.RECIPES], say)
    return [named.get(name) or Path(name).absolute() for name in wanted]


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
