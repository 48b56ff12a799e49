"""Who the operator is to the API server, by kubeconfigs as people have them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dtj_operator.kube.login import Login, NoLogin


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return tmp_path


def kubeconfig(cluster: dict[str, Any], user: dict[str, Any], context: str = "c") -> str:
    return yaml.safe_dump(
        {
            "clusters": [{"name": "k", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "current-context": context,
        }
    )


def test_a_token_is_read_anew_at_every_login(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / "config"
    monkeypatch.setenv("KUBECONFIG", str(file))
    login = Login()
    for token in ("old", "new"):
        file.write_text(kubeconfig({"server": "http://127.0.0.1:1"}, {"token": token}))
        told = login()
        assert (told.server, told.headers, told.tls) == (
            "http://127.0.0.1:1",
            {"Authorization": f"Bearer {token}"},
            True,
        )


def test_certificates_are_loaded_once_while_they_stay_the_same(home: Path) -> None:
    (home / ".kube").mkdir()
    file = home / ".kube" / "config"
    login = Login()
    contexts = []
    for cluster in ({"insecure-skip-tls-verify": True}, {"insecure-skip-tls-verify": True}, {}):
        file.write_text(kubeconfig({"server": "https://127.0.0.1:1", **cluster}, {"username": "a", "password": "b"}))
        contexts.append(login().tls)
    assert contexts[0] is contexts[1]
    assert contexts[1] is not contexts[2]


def test_without_any_login_it_says_what_to_name(home: Path) -> None:
    with pytest.raises(NoLogin, match="name one by --kubeconfig"):
        Login()()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="no such file"),
        pytest.param("]", id="no YAML"),
        pytest.param(kubeconfig({"server": "http://a"}, {"token": "t"}, context="other"), id="no such context"),
        pytest.param("{}", id="empty"),
    ],
)
def test_a_kubeconfig_that_is_no_use_is_named(home: Path, monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    file = home / "mine"
    monkeypatch.setenv("KUBECONFIG", str(file))
    if text is not None:
        file.write_text(text)
    with pytest.raises(NoLogin, match="mine can't be used"):
        Login()()
