"""Further stores that storage.conf names."""

from pathlib import Path

import pytest

from lamina.clients.cri.runtime_source import RuntimeSourceError
from lamina.clients.cri.storage.storage_conf import additional_stores, host_folder
from tests.unit.clients.cri.storage.written import Disk, put


@pytest.fixture
def host(tmp_path):
    Disk(tmp_path / "var/lib/containers/storage").save()
    for name in ("shared", "other"):
        Disk(tmp_path / "usr/lib" / name).save()
    return tmp_path


def write(host: Path, text: str, place: str = "etc/containers/storage.conf") -> None:
    (host / place).parent.mkdir(parents=True, exist_ok=True)
    put(host / place, text.encode())


def stores(host: Path) -> list[str]:
    return [str(path.relative_to(host)) for path in additional_stores(host / "var/lib/containers/storage")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("[storage]\ndriver = 'overlay'\n", [], id="none"),
        pytest.param(
            "[storage.options]\nadditionalimagestores = ['/usr/lib/shared', '/usr/lib/other']\n",
            ["usr/lib/shared", "usr/lib/other"],
            id="two",
        ),
        pytest.param(
            "[storage.options]\nadditionalimagestores = ['/not/mounted', '/usr/lib/shared']\n",
            ["usr/lib/shared"],
            id="one that is not mounted is left out",
        ),
        pytest.param("[storage]\nimagestore = '/usr/lib/other'\n", ["usr/lib/other"], id="images kept apart"),
        pytest.param("[storage]\nimagestore = '/var/lib/containers/storage'\n", [], id="the store itself"),
    ],
)
def test_stores_are_found_where_the_host_is_mounted(host, text, found):
    write(host, text)

    assert found == stores(host)


def test_the_file_of_the_machine_goes_before_that_of_the_distribution(host):
    write(host, "[storage]\nimagestore = '/usr/lib/other'\n", "usr/share/containers/storage.conf")
    assert ["usr/lib/other"] == stores(host)

    write(host, "[storage]\nimagestore = '/usr/lib/shared'\n")
    assert ["usr/lib/shared"] == stores(host)


def test_no_file_names_no_stores(host):
    assert [] == stores(host)


@pytest.mark.parametrize(
    ("root", "host"),
    [
        pytest.param("/var/lib/containers/storage", "/", id="on the host"),
        pytest.param("/host/var/lib/containers/storage", "/host", id="mounted"),
        pytest.param("/storage", None, id="elsewhere"),
        pytest.param("var/lib/containers/storage", None, id="relative"),
    ],
)
def test_the_host_is_where_the_store_is_in_its_usual_place(root, host):
    assert (None if host is None else Path(host)) == host_folder(Path(root))


def test_a_store_elsewhere_has_no_configuration(tmp_path):
    assert () == additional_stores(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("[storage", "is not valid", id="half a table"),
        pytest.param("storage = 7", "is not valid", id="no table"),
        pytest.param("[storage.options]\nadditionalimagestores = [7]", "is not valid", id="a number"),
        pytest.param("#" * (1024 * 1024 + 1), "cannot be read: .*more than", id="too large"),
    ],
)
def test_a_file_that_cannot_be_used_is_said_in_one_line(host, text, words):
    write(host, text)

    with pytest.raises(RuntimeSourceError, match=words) as caught:
        stores(host)
    assert str(host / "etc/containers/storage.conf") in str(caught.value)
    assert "\n" not in str(caught.value)
