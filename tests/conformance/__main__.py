"""`python -m tests.conformance [--kubeconfig FILE] [--record] [-k PART]`: play, compare, and record what was answered.

With a kubeconfig it is the real server that is played and compared with what is recorded, else an embedded one.
"""

import argparse
import asyncio
import sys
import tempfile
import traceback
from collections import defaultdict
from pathlib import Path
from typing import Any

import aiohttp

from tests.conformance.compare import differences
from tests.conformance.excuses import of_story, stale, unexcused
from tests.conformance.known import EXCUSES
from tests.conformance.page import PAGE, page
from tests.conformance.play import Server, Story
from tests.conformance.recordings import FOLDER, record, recorded
from tests.conformance.servers import all_played, all_stories, embedded, prepared, real

Json = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kubeconfig", type=Path, help="play against this cluster")
    parser.add_argument("--record", action="store_true", help="keep the answers as those of a real server")
    parser.add_argument("--into", type=Path, default=FOLDER, help="keep them there")
    parser.add_argument("--all", action="store_true", help="tell the known differences, too")
    parser.add_argument("--docs", action="store_true", help="write the known differences into the docs, and end")
    parser.add_argument("-k", default="", help="stories with this in their topic or name")
    asked = parser.parse_args()
    if asked.docs:
        PAGE.write_text(page())
        return 0
    told = [one for one in all_stories() if asked.k in one.place]
    version, ends = asyncio.run(_played(told, asked.kubeconfig))
    broken = {name: end for name, end in ends.items() if isinstance(end, BaseException)}
    for name, end in broken.items():
        print(f"{name} could not be told:", *traceback.format_exception(end)[-3:], file=sys.stderr)
    steps = {name: end for name, end in ends.items() if not isinstance(end, BaseException)}
    if asked.record:
        _record(told, steps, version, asked.into)
        return bool(broken)
    count = needless = 0
    for one in told:
        if one.name not in steps:
            continue
        wanted = recorded(one.topic, asked.into)["stories"].get(one.name)
        if wanted is None:
            print(f"{one.place}: nothing is recorded")
            continue
        found = list(differences(one.place, wanted, steps[one.name]))
        excuses = of_story(EXCUSES, one.place)
        told_ones = found if asked.all else unexcused(excuses, found)
        count += len(told_ones)
        for difference in told_ones:
            print(difference)
        covers_nothing = stale(excuses, found) if asked.kubeconfig is None else []
        needless += len(covers_nothing)
        for excuse in covers_nothing:
            print(f"{excuse}: an excuse that covers no difference any more")
    counts = f"{count} differences, {needless} needless excuses, {len(broken)} could not be told"
    print(f"{len(told)} stories, {counts}")
    return bool(count or needless or broken)


async def _played(told: list[Story], kubeconfig: Path | None) -> tuple[str, dict[str, list[Json] | BaseException]]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=300)) as session:
        if kubeconfig is not None:
            with tempfile.TemporaryDirectory() as folder:
                return await _against(session, real(kubeconfig, Path(folder)), told)
        ends: dict[str, list[Json] | BaseException] = {}
        version = ""
        for one in told:
            with tempfile.TemporaryDirectory() as folder:
                async with embedded(Path(folder), one.history) as server:
                    version, end = await _against(session, server, [one])
                    ends |= end
        return version, ends


async def _against(
    session: aiohttp.ClientSession, server: Server, told: list[Story]
) -> tuple[str, dict[str, list[Json] | BaseException]]:
    async with prepared(session, server) as version:
        return version, await all_played(session, server, told)


def _record(told: list[Story], steps: dict[str, list[Json]], version: str, folder: Path) -> None:
    by_topic: dict[str, dict[str, list[Json]]] = defaultdict(dict)
    for one in told:
        if one.name in steps:
            by_topic[one.topic][one.name] = steps[one.name]
    for topic, stories in by_topic.items():
        record(topic, version, recorded(topic, folder)["stories"] | stories, folder)


if __name__ == "__main__":
    sys.exit(main())
