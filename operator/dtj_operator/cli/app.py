"""The `dtj` command: what can be asked for, and its options. What a command does is imported when it is used."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dtj_operator.cli import outcome

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


def main() -> None:
    """Run the command line; the exit code is that of `outcome`."""
    try:
        app(standalone_mode=True)
    except outcome.Ended as end:
        for line in end.lines:
            print(line, file=sys.stderr)
        sys.exit(end.code)


@app.command()
def run(
    filename: Files,
    fail: Annotated[
        str | None, typer.Option(help="Hurt a task on the way: worker:1@step=60, then :SIGTERM or :exit=3.")
    ] = None,
    output: Output = None,
    nodes: Annotated[int, typer.Option(min=1, max=1000, help="How many nodes to play.")] = 1,
    gpus: Annotated[int, typer.Option(min=0, help="GPUs of each node; they are counted only.")] = 0,
    map_: Annotated[
        list[str] | None, typer.Option("--map", help="/data=./data: a folder of this machine in the place of a path.")
    ] = None,
    python: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Stands for the image: what programs run under.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds after which to give up, with code 124.")] = None,
    isolate: Annotated[
        bool, typer.Option("--isolate", help="Programs get a network that nothing else reaches.")
    ] = False,
    keep: Annotated[
        Path | None, typer.Option(file_okay=False, help="Leave logs and checkpoints in this folder.")
    ] = None,
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
        quiet=quiet,
    )
    sys.exit(run_job(wish))


@app.command()
def validate(filename: Files) -> None:
    """Tell every fault of the jobs in a file, each with its field path. No cluster is asked."""
    from dtj_operator.cli.validate import validate as validate_files

    sys.exit(validate_files(filename))


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
