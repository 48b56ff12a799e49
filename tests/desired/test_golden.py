"""The smallest example as a whole, so that a change of any field shows in a diff that a person reads."""

from pathlib import Path

import yaml

from dtj_operator.desired.objects import children
from dtj_operator.desired.pods import pod
from dtj_operator.desired.topology import topology
from tests.desired.jobs import SMALLEST, job

GOLDEN = Path(__file__).parent / "golden" / "smallest.yaml"


def test_the_smallest_example() -> None:
    s = job(SMALLEST)
    t = topology(s)
    made = [*children(s, t), *(pod(s, t, task, 0, 0) for task in t.tasks[:2])]
    assert made == list(yaml.safe_load_all(GOLDEN.read_text()))
