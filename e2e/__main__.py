"""`python -m e2e`: a real Kubernetes for a person (`cluster`), or for the tests (`test`)."""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from e2e import images, machine, packages, programs
from e2e.chart import Helm
from e2e.cluster import Options, cluster


def main() -> int:
    arguments, rest = parser().parse_known_args()
    if rest and arguments.what != "test":
        parser().error(f"what is {' '.join(rest)}?")
    try:
        return int(arguments.run(arguments, rest))
    except RuntimeError as error:
        print(f"e2e: {error}", file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m e2e", description=__doc__)
    commands = top.add_subparsers(dest="what", required=True)
    versions = sorted(programs.KUBERNETES)
    gates = "of the whole cluster, as the API server takes them"
    named = f"for all nodes, by the file of a docker-archive or a name: {', '.join(images.RECIPES)}"

    person = commands.add_parser("cluster", help="bring a cluster up, until Ctrl-C")
    person.add_argument("--kubernetes", choices=versions, default="1.37")
    person.add_argument("--nodes", type=int, default=3)
    person.add_argument("--gpus", type=int, default=4, help="of each node; they are only said to be there")
    person.add_argument("--feature-gates", default="", help=gates)
    person.add_argument("--image", action="append", default=[], help=named)
    person.add_argument("--operator", action="store_true", help="with the operator of this tree, by its chart")
    person.set_defaults(run=for_a_person)

    tests = commands.add_parser("test", help="run tests on a cluster; what else is given goes to pytest")
    tests.add_argument("--kubernetes", choices=versions, action="append", help="once or more; 1.37 if not given")
    tests.add_argument("--image", action="append", default=[], help=f"{named}; those without TensorFlow are there")
    tests.set_defaults(run=for_tests)

    beside = commands.add_parser("join", help="run a command in the namespace of the cluster that is up")
    beside.add_argument("command", nargs=argparse.REMAINDER)
    beside.set_defaults(run=lambda arguments, _: machine.join(arguments.command or ["bash"]))
    return top


def for_a_person(arguments: argparse.Namespace, _: list[str]) -> int:
    if machine.FOLDER not in os.environ:
        wanted = [*arguments.image, *(images.SMALL if arguments.operator else ())]
        archives = prepare(arguments.kubernetes, wanted)
        command = [sys.executable, "-m", "e2e", *sys.argv[1:], *(f"--image={file}" for file in archives)]
        return machine.run(command, say)
    options = Options(
        version=arguments.kubernetes,
        nodes=arguments.nodes,
        gpus=arguments.gpus,
        feature_gates=arguments.feature_gates,
        images=tuple(dict.fromkeys(Path(file) for file in arguments.image if Path(file).is_absolute())),
    )
    try:
        with cluster(options, machine.folder(), say) as up, up.door() as kubeconfig:
            if arguments.operator:
                Helm(up.kubeconfig).install()
                say("the operator is there: namespace dtj-system")
            say(f"  export KUBECONFIG={kubeconfig}")
            say("  python -m e2e join COMMAND   # where pods, nodes and services can be reached")
            say(f"logs are in {up.folder / 'log'}; Ctrl-C ends it")
            signal.pause()
    except KeyboardInterrupt:
        pass
    say("the cluster is gone")
    return 0


def for_tests(arguments: argparse.Namespace, rest: list[str]) -> int:
    """On each version in turn; on the cluster of KUBECONFIG where it is set."""
    command = [sys.executable, "-m", "pytest", "-p", "e2e.plugin", *(rest or ["e2e/tests"])]
    if "KUBECONFIG" in os.environ:
        return subprocess.run(command, cwd=machine.ROOT, check=False).returncode
    codes = []
    for version in arguments.kubernetes or ["1.37"]:
        archives = prepare(version, [*arguments.image, *images.SMALL])
        codes.append(machine.run([*command, f"--kubernetes={version}", *(f"--image={file}" for file in archives)], say))
    return max(codes)


def prepare(version: str, wanted: Iterable[str]) -> list[Path]:
    """What takes long the first time, and the network, which the namespace has not; the images' archives."""
    packages.install(say)
    for family in (programs.KUBERNETES[version], "etcd", "coredns", "kube-router", "pause", "helm"):
        programs.build(family, say)
    return files(wanted)


def files(wanted: Iterable[str]) -> list[Path]:
    """A docker-archive each; by name, it is built where it is not there yet."""
    named = images.archives([name for name in wanted if name in images.RECIPES], say)
    return [named.get(name) or Path(name).absolute() for name in wanted]


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
