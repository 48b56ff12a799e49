"""The command line and the environment of the operator."""

import pytest

from dtj_operator.manager.main import pause_seconds
from dtj_operator.manager.options import parse


def test_nothing_said_is_the_whole_cluster_with_a_lease() -> None:
    told = parse([], {})
    assert (told.namespaces, told.lease, told.local, told.port, told.json_logs) == ((None,), True, False, 8080, False)
    assert told.facts().namespace == "dtj-system"
    assert told.facts().labels_of_operator == {}


def test_the_environment_is_heard_and_the_command_line_goes_before() -> None:
    environment = {
        "DTJ_NAMESPACES": "a, b",
        "DTJ_LEASE": "false",
        "DTJ_PORT": "9000",
        "DTJ_OPERATOR_NAMESPACE": "ops",
        "DTJ_OPERATOR_LABELS": "app=dtj, part=operator",
        "DTJ_MONITORING": '[{"podSelector": {}}]',
        "DTJ_SUPERVISOR_IMAGE": "dtj/supervisor:1",
    }
    told = parse(["--port", "0", "--json-logs", "--autoscaler"], environment)
    assert (told.namespaces, told.lease, told.port, told.json_logs) == (("a", "b"), False, 0, True)
    facts = told.facts()
    assert (facts.namespace, facts.supervisor_image, facts.has_autoscaler) == ("ops", "dtj/supervisor:1", True)
    assert facts.labels_of_operator == {"app": "dtj", "part": "operator"}
    assert facts.monitoring == ({"podSelector": {}},)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["--operator-labels", "app"], "expected key=value", id="labels"),
        pytest.param(["--monitoring", "{}"], "JSON list of NetworkPolicyPeers", id="peers"),
        pytest.param(["--port", "http"], "invalid int", id="port"),
        pytest.param(["--namespace", "a, a"], "", id="a prefix is taken for what it begins, a name twice for one"),
    ],
)
def test_a_mistake_is_named(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    if not words:
        assert parse(arguments, {}).namespaces == ("a",)
        return
    with pytest.raises(SystemExit):
        parse(arguments, {})
    assert words in capsys.readouterr().err


def test_a_typo_in_a_variable_is_not_taken_for_a_no(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse([], {"DTJ_LEASE": "ture"})
    assert "DTJ_LEASE: 'ture' is neither true nor false" in capsys.readouterr().err


def test_a_process_that_starts_again_for_ever_waits_a_minute_each_time() -> None:
    assert [pause_seconds(restarts) for restarts in (0, 1, 5, 6, 5000)] == [1, 2, 32, 60, 60]
