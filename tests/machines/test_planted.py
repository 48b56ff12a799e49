"""What these tests are worth: a bug that is planted into the operator is found by killing it before each step."""

from typing import Any

import msgspec
import pytest

from dtj_operator.api.observed import Situation
from dtj_operator.api.status import Time
from dtj_operator.decide import plan as planning
from dtj_operator.decide.actions import Plan
from dtj_operator.decide.members import Members, members, rounds_of
from dtj_operator.desired.topology import topology
from dtj_operator.kube.apply import Applier, Outcome
from dtj_operator.kube.client import Kind, Propagation
from dtj_operator.local.direct import DirectClient
from tests.machines.lives import Story, first_difference, live, places
from tests.machines.stories import killed_once, replaced

apply = Applier.apply


async def actions_first(self: Applier, s: Situation, plan: Plan) -> Outcome:
    await apply(self, s, msgspec.structs.replace(plan, status=None))
    return await apply(self, s, msgspec.structs.replace(plan, actions=()))


async def by_name_alone(
    self: DirectClient,
    kind: Kind,
    namespace: str | None,
    name: str,
    *,
    uid: str,
    force: bool = False,
    propagation: Propagation = "Background",
) -> None:
    options = {"propagationPolicy": propagation} | ({"gracePeriodSeconds": 0} if force else {})
    await self._answer("delete", kind, namespace, name, body=options)


def whatever_the_round(s: Situation, now: Time) -> Members:
    rounds = rounds_of(s.status, topology(s).tasks)
    pods = [msgspec.structs.replace(pod, round=rounds.get(pod.task, pod.round)) for pod in s.pods]
    return members(msgspec.structs.replace(s, pods=tuple(pods)), now)


@pytest.mark.parametrize(
    ("story", "where", "name", "bug"),
    [
        pytest.param(killed_once, Applier, "apply", actions_first, id="actions before the status"),
        pytest.param(replaced, DirectClient, "delete", by_name_alone, id="deletes by name alone"),
        pytest.param(killed_once, planning, "members", whatever_the_round, id="pods of whatever round"),
    ],
)
def test_a_planted_bug_is_found(story: Story, where: Any, name: str, bug: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = live(story, keep_marks=True)
    monkeypatch.setattr(where, name, bug)
    kills = places(sound)
    if story is replaced:
        # What has left the first job behind is sent in the second half.
        kills = places(sound, with_requests=True)[40:]
    assert first_difference(story, sound.end, [None, *kills]) is not None
