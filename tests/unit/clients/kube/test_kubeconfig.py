"""Kubeconfigs: which files, which context, and every mistake in one line."""

import pytest

from lamina.clients.kube import kubeconfig
from lamina.clients.kube.kubeconfig import files_to_read, read_kubeconfig
from lamina.model.errors import InputError
from tests.unit.clients.kube.kubeconfigs import config, saved


def said(*paths, context="") -> str:
    """What is said about files that cannot be used."""
    with pytest.raises(InputError) as caught:
        read_kubeconfig(paths).choose(context)
    return str(caught.value)


# ------------------------------------------------------------------------------------------------------- which files


def test_the_flag_goes_before_the_variable_and_the_variable_before_the_file_at_home(tmp_path):
    home = saved(tmp_path / ".kube/config", config())
    a, b = saved(tmp_path / "a", config()), saved(tmp_path / "b", config())

    assert [b] == files_to_read(b, {"KUBECONFIG": str(a)}, tmp_path)
    assert [a, b] == files_to_read(None, {"KUBECONFIG": f"{a}::{b}:{tmp_path / 'absent'}:{a}"}, tmp_path)
    assert [home] == files_to_read(None, {"KUBECONFIG": ""}, tmp_path)
    assert [] == files_to_read(None, {}, tmp_path / "nobody")
    assert [] == files_to_read(None, {}, None)


def test_a_file_that_may_not_be_looked_at_is_not_taken_for_absent(tmp_path, monkeypatch):
    def denied(path, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), "stat", denied)

    assert [tmp_path / "a"] == files_to_read(None, {"KUBECONFIG": str(tmp_path / "a")}, tmp_path)


def test_a_variable_that_names_only_absent_files_is_a_mistake(tmp_path):
    with pytest.raises(InputError) as caught:
        files_to_read(None, {"KUBECONFIG": f"{tmp_path / 'x'}:{tmp_path / 'y'}"}, tmp_path)

    expected = f"$KUBECONFIG: no such file: {tmp_path / 'x'}, {tmp_path / 'y'}; correct the variable or unset it"
    assert expected == str(caught.value)


# ----------------------------------------------------------------------------------------------------------- merging


def test_of_each_name_the_first_counts_and_nothing_of_it_is_mixed(tmp_path):
    first = config(name="red", cluster={"server": "https://first:1"})
    second = config(name="red", cluster={"server": "https://second:2", "tls-server-name": "x"})
    second["clusters"].append({"name": "blue", "cluster": {"server": "https://blue:3"}})
    second["contexts"].append({"name": "blue", "context": {"cluster": "blue", "user": "red", "namespace": "ns"}})
    files = read_kubeconfig([saved(tmp_path / "1", first), saved(tmp_path / "2", second)])

    red, blue = files.choose(), files.choose("blue")

    assert ("https://first:1", "default", False) == (red.server, red.namespace, red.cluster.has("tls-server-name"))
    assert ("https://blue:3", "ns", str(tmp_path / "1")) == (blue.server, blue.namespace, blue.user.source)


def test_the_first_current_context_counts_and_an_empty_file_says_nothing(tmp_path):
    (tmp_path / "0").write_text("\n")
    (tmp_path / "1").write_text("---\n# only a comment\n")
    files = [tmp_path / "0", tmp_path / "1", saved(tmp_path / "2", config(name="a")), saved(tmp_path / "3", config())]

    assert "https://127.0.0.1:6443" == read_kubeconfig(files).choose().server


def test_a_relative_path_begins_at_the_file_it_stands_in(tmp_path):
    first = saved(tmp_path / "one/config", {"kind": "Config", "current-context": "c"})
    second = saved(tmp_path / "two/config", config(user={"tokenFile": "secrets/token"}))

    chosen = read_kubeconfig([first, second]).choose()

    assert tmp_path / "two/secrets/token" == chosen.user.file("tokenFile")


def test_fields_of_other_tools_are_ignored(tmp_path):
    document = config() | {"preferences": {"colors": True}, "extensions": [{"name": "x", "extension": [1, None]}]}
    document["clusters"][0]["cluster"] |= {"extensions": [{"name": "y"}], "disable-compression": True, "new": 1}

    assert "https://127.0.0.1:6443" == read_kubeconfig([saved(tmp_path / "c", document)]).choose().server


def test_a_mistake_in_an_entry_that_is_not_chosen_does_no_harm(tmp_path):
    document = config()
    document["clusters"].append({"name": "other", "cluster": {"server": 5}})

    assert read_kubeconfig([saved(tmp_path / "c", document)]).choose().server


# ---------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("kind: Pod\n", ":1: kind: is 'Pod', expected Config", id="something else"),
        pytest.param("a: [1\n", ":1: not valid YAML: a value or a ',' is missing", id="not YAML"),
        pytest.param("- 1\n", ":1: expected a mapping", id="a list"),
        pytest.param("kind: Config\nkind: Config\n", ":2: kind: written twice in one mapping", id="twice"),
        pytest.param("contexts: 5\ncurrent-context: x\n", ":1: contexts: expected a list", id="not a list"),
        pytest.param("kind: Config\n", ": no current context; choose one with --context", id="no context"),
        pytest.param("current-context: x\n", ": there is no context 'x'; nothing can be chosen here", id="absent"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_with_its_line(tmp_path, text, expected):
    path = tmp_path / "config"
    path.write_text(text)

    assert said(path).startswith(f"{path}{expected}")


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(kubeconfig, "FILE_LIMIT", 1024)
    (tmp_path / "config").write_text("#" * 1025)

    assert f"{tmp_path / 'config'}: too large for a kubeconfig; at most 1 KiB are allowed" == said(tmp_path / "config")


def test_bytes_that_are_no_text_are_told(tmp_path):
    (tmp_path / "config").write_bytes(b"\xff\xfe")

    assert f"{tmp_path / 'config'}: the kubeconfig is not UTF-8 text; is this the right file?" == said(
        tmp_path / "config"
    )


def test_a_file_that_was_named_must_exist(tmp_path):
    assert f"{tmp_path / 'no'}: the kubeconfig cannot be read: no such file or directory" == said(tmp_path / "no")


def test_aliases_cannot_blow_a_file_up(tmp_path):
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    (tmp_path / "config").write_text("\n".join(rows))

    assert "too much in it" in said(tmp_path / "config")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({"server": ""}, "server: the cluster has no server; write https://HOST:PORT", id="no server"),
        pytest.param({"server": 5}, "server: expected text; put it in quotes", id="a number"),
        pytest.param({"server": "localhost:8080"}, "server: cannot be used as an address", id="no scheme"),
        pytest.param({"server": "ftp://host"}, "server: cannot be used as an address", id="another scheme"),
        pytest.param({"server": "https://"}, "server: cannot be used as an address", id="no host"),
        pytest.param({"server": "https://h:99999"}, "server: cannot be used as an address", id="no such port"),
        pytest.param({"server": "https://h\r\nX: y"}, "server: cannot be used as an address", id="line break"),
        pytest.param({"server": "https://me@host"}, "server: contains a user, query or fragment", id="a user in it"),
        pytest.param({"proxy-url": "http://p:1"}, "proxy-url: proxies are not supported; remove it", id="proxy"),
    ],
)
def test_a_server_that_cannot_be_asked_is_told(tmp_path, change, expected):
    path = saved(tmp_path / "c", config(cluster=change))

    assert said(path).startswith(f"{path}:1: clusters[0].cluster.{expected}")


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        pytest.param({"cluster": "other"}, "there is no cluster 'other'; choose from c", id="cluster"),
        pytest.param({"user": "cc"}, "there is no user 'cc'; choose from c", id="user"),
        pytest.param({"cluster": ""}, "contexts[0].context.cluster: the context names no cluster", id="no cluster"),
        pytest.param({"namespace": "A/B"}, "namespace: 'A/B' is not a valid namespace name", id="namespace"),
    ],
)
def test_what_a_context_names_must_be_there(tmp_path, part, expected):
    document = config()
    document["contexts"][0]["context"] |= part

    assert expected in said(saved(tmp_path / "c", document))


def test_a_name_that_is_there_twice_in_one_file_is_told(tmp_path):
    document = config()
    document["users"].append(document["users"][0])

    assert "users[1].name: the user 'c' is defined twice; remove one" in said(saved(tmp_path / "c", document))


def test_a_context_that_is_absent_is_told_with_those_that_are_there(tmp_path):
    assert "there is no context 'prod'; choose from c" in said(saved(tmp_path / "c", config()), context="prod")


def test_a_path_in_front_of_the_api_is_kept_and_a_slash_at_its_end_is_not(tmp_path):
    path = saved(tmp_path / "c", config(cluster={"server": "https://host/k8s/c-1/"}))

    assert "https://host/k8s/c-1" == read_kubeconfig([path]).choose().server


def test_a_context_without_a_user_is_nobodys(tmp_path):
    path = saved(
        tmp_path / "c", config(user={"token": "t"}) | {"contexts": [{"name": "c", "context": {"cluster": "c"}}]}
    )

    assert not read_kubeconfig([path]).choose().user.has("token")
