"""The `dtj` command: what can be asked for, and its options. What a command does is imported when it is used."""

import platform
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from dtj_operator.cli import outcome, streams

app = typer.Typer(
    help="Distributed TensorFlow training as one resource: run a job on this machine, or look at those of a cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Files = Annotated[
    list[str], typer.Option("--filename", "-f", help="Manifest; - is the standard input. May be repeated.")
]
Output = Annotated[str | None, typer.Option("--output", "-o", help="Print the object as json or yaml.")]
Name = Annotated[str, typer.Argument(help="Of the job.")]
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="Default: what the kubeconfig says.")]
Kubeconfig = Annotated[str | None, typer.Option(help="Default: $KUBECONFIG, else ~/.kube/config.")]
Context = Annotated[str | None, typer.Option(help="One of the kubeconfig's contexts.")]
Nodes = Annotated[int, typer.Option(min=1, max=1000, help="How many nodes to play.")]
Gpus = Annotated[int, typer.Option(min=0, help="GPUs of each node; they are counted only.")]
Mapped = Annotated[
    list[str] | None, typer.Option("--map", help="/data=./data: a folder of this machine in the place of a path.")
]
Python = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="Stands for the image: what programs run under.")
]
Isolate = Annotated[bool, typer.Option("--isolate", help="Programs get a network that nothing else reaches.")]
Keep = Annotated[Path | None, typer.Option(file_okay=False, help="Leave logs and checkpoints in this folder.")]


def main() -> None:
    """Run the command line; the exit code is that of `outcome`."""
    streams.prepare()
    # Where an event loop runs it has its own, and leaves Python's behind; everywhere else there is nothing to put in
    # order.
    signal.signal(signal.SIGINT, lambda *_: sys.exit(outcome.INTERRUPTED))
    try:
        app()
    except outcome.Ended as end:
        for line in end.lines:
            print(line, file=sys.stderr)
        sys.exit(end.code)
    except KeyboardInterrupt:
        sys.exit(outcome.INTERRUPTED)
    finally:
        sys.stdout.flush()


class _OfFiles(typer.core.TyperCommand):
    """A command of manifests: one that is named without its option is told what was meant."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not any(word.startswith(("-f", "--filename", "--help")) for word in args):
            for word in args:
                if word.endswith((".yaml", ".yml", ".json")):
                    told = f"{ctx.command_path} takes manifests by an option; did you mean -f {word}?"
                    raise outcome.Ended(outcome.BAD_MANIFEST, [told])
        return super().parse_args(ctx, args)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"dtj {version('dtj-operator')}, Python {platform.python_version()}")
        raise typer.Exit


@app.callback()
def _dtj(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print which dtj this is.")
    ] = False,
) -> None:
    pass


@app.command(cls=_OfFiles)
def run(
    filename: Files,
    fail: Annotated[
        str | None, typer.Option(help="Hurt a task on the way: worker:1@step=60, then :SIGTERM or :exit=3.")
    ] = None,
    output: Output = None,
    nodes: Nodes = 1,
    gpus: Gpus = 0,
    map_: Mapped = None,
    python: Python = None,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds after which to give up, with code 124.")] = None,
    isolate: Isolate = False,
    keep: Keep = None,
    make_claims: Annotated[
        bool, typer.Option("--make-claims", help="Make the claims that the job names and the file lacks, empty.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Leave out what the programs print.")] = False,
) -> None:
    """Run a job on this machine, without Kubernetes, to its end."""
    from dtj_operator.cli.run import Wish
    from dtj_operator.cli.run import run as run_job

    wish = Wish(
        files=filename,
        fail=fail,
        output=_format(output),
        nodes=nodes,
        gpus=gpus,
        mapped=_mapped(map_ or []),
        python=python or Path(sys.executable),
        timeout=timeout,
        isolate=isolate,
        keep=keep,
        make_claims=make_claims,
        quiet=quiet,
    )
    sys.exit(run_job(wish))


@app.command(cls=_OfFiles)
def validate(filename: Files) -> None:
    """Tell every fault of the jobs in a file, each with its field path. No cluster is asked."""
    from dtj_operator.cli.validate import validate as validate_files

    sys.exit(validate_files(filename))


@app.command(cls=_OfFiles)
def render(
    filename: Files, output: Annotated[str, typer.Option("--output", "-o", help="yaml or json.")] = "yaml"
) -> None:
    """Print all objects that the operator would make of a job, TF_CONFIG included. No cluster is asked."""
    from dtj_operator.cli.render import render as render_files

    print(render_files(filename, _format(output)), end="")


@app.command()
def local(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of the Kubernetes API; 0: any that is free.")] = 0,
    nodes: Nodes = 1,
    gpus: Gpus = 0,
    map_: Mapped = None,
    python: Python = None,
    isolate: Isolate = False,
    keep: Keep = None,
) -> None:
    """Keep an embedded cluster running, for kubectl; programs are looked for in this folder."""
    from dtj_operator.cli.local import local as serve
    from dtj_operator.local.cluster import Options

    options = Options(
        folder=Path.cwd(),
        port=port,
        nodes=nodes,
        gpus=gpus,
        mapped=_mapped(map_ or []),
        python=python or Path(sys.executable),
        isolate=isolate,
        state=keep,
    )
    sys.exit(serve(options))


@app.command()
def status(
    name: Annotated[str | None, typer.Argument(help="Of the job; without one, all of the namespace.")] = None,
    output: Output = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Tell what a job of a cluster does, what it waits for and what went wrong."""
    from dtj_operator.cli.remote import Access
    from dtj_operator.cli.status import status as print_status

    print_status(Access(kubeconfig, context, namespace), name, _format(output))


@app.command()
def logs(
    name: Name,
    task: Annotated[str | None, typer.Option(help="Of this task alone, such as worker-1.")] = None,
    attempt: Annotated[int | None, typer.Option(min=0, help="Of this attempt, as far as its pods are kept.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job is over.")] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Print what the programs of a job print."""
    from dtj_operator.cli.logs import logs as print_logs
    from dtj_operator.cli.remote import Access

    print_logs(Access(kubeconfig, context, namespace), name, task=task, attempt=attempt, follow=follow)


@app.command()
def restart(name: Name, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Begin a new attempt at the newest checkpoint."""
    from dtj_operator.cli import change
    from dtj_operator.cli.remote import Access

    print(change.restart(Access(kubeconfig, context, namespace), name))


@app.command()
def suspend(name: Name, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Stop a job and give its place back, until it is resumed."""
    from dtj_operator.cli import change
    from dtj_operator.cli.remote import Access

    print(change.suspend(Access(kubeconfig, context, namespace), name))


@app.command()
def resume(name: Name, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Take a suspended job up again."""
    from dtj_operator.cli import change
    from dtj_operator.cli.remote import Access

    print(change.resume(Access(kubeconfig, context, namespace), name))


def _format(text: str | None) -> Any:
    if text not in (None, "json", "yaml"):
        raise outcome.Ended(outcome.BAD_MANIFEST, [f"--output {text}: json or yaml"])
    return text


def _mapped(pairs: list[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for pair in pairs:
        inside, equals, here = pair.partition("=")
        if not equals or not inside.startswith("/"):
            raise outcome.Ended(outcome.BAD_MANIFEST, [f"--map {pair}: expected /path/in/the/pod=folder/here"])
        if not Path(here).is_dir():
            raise outcome.Ended(outcome.BAD_MANIFEST, [f"--map {pair}: {here} is no folder"])
        found[inside] = Path(here)
    return found
