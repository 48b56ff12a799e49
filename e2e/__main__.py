"""`python -m e2e`: a real Kubernetes for a person (`cluster`), or for the tests (`test`)."""

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

from e2e import machine, packages, programs
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
    person = commands.add_parser("cluster", help="bring a cluster up, until Ctrl-C")
    person.add_argument("--kubernetes", choices=sorted(programs.KUBERNETES), default="1.37")
    person.add_argument("--nodes", type=int, default=3)
    person.add_argument("--gpus", type=int, default=4, help="of each node; they are only said to be there")
    person.add_argument("--feature-gates", default="", help="as API server, scheduler, … take them")
    person.add_argument("--image", type=Path, action="append", default=[], help="a docker-archive for all nodes")
    person.set_defaults(run=for_a_person)
    tests = commands.add_parser("test", help="run tests on a cluster; what else is given goes to pytest")
    tests.add_argument("--kubernetes", choices=sorted(programs.KUBERNETES), action="append", help="once or more")
    tests.set_defaults(run=for_tests)
    beside = commands.add_parser("join", help="run a command in the namespace of the cluster that is up")
    beside.add_argument("command", nargs=argparse.REMAINDER)
    beside.set_defaults(run=lambda arguments, _: machine.join(arguments.command or ["bash"]))
    return top


def for_a_person(arguments: argparse.Namespace, _: list[str]) -> int:
    options = Options(
        version=arguments.kubernetes,
        nodes=arguments.nodes,
        gpus=arguments.gpus,
        feature_gates=arguments.feature_gates,
        images=tuple(arguments.image),
    )
    if machine.FOLDER not in os.environ:
        prepare(options)
        return machine.run([sys.executable, "-m", "e2e", *sys.argv[1:]], say)
    try:
        with cluster(options, machine.folder(), say) as up, up.door() as kubeconfig:
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
        prepare(Options(version=version))
        codes.append(machine.run([*command, f"--kubernetes={version}"], say))
    return max(codes)


def prepare(options: Options) -> None:
    """What takes long the first time, and the network, which the namespace has not."""
    packages.install(say)
    for family in (programs.KUBERNETES[options.version], "etcd", "coredns", "kube-router", "pause"):
        programs.build(family, say)


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
