"""A look at everything, where something else answers in the API server's place."""

import pytest

from lamina.services.doctor import all_checks, runtime_checks
from lamina.services.doctor.all_checks import DoctorOptions, run_checks
from lamina.services.doctor.finding import Finding

ODD = b'{"metadata": {"creationTimestamp": "yesterday"}, "gitVersion": "v1.36.0", "major": "1", "minor": "36"}'


class Something:
    """Answers every question in the same way."""

    answer = b""

    def __init__(self, *_, **__):
        pass

    async def request(self, *_, **__):
        return self.answer

    async def close(self):
        pass


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"<html>Please log in</html>", id="a page for people"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"x":' * 50_000, id="without end"),
        pytest.param(b'{"gitVersion": "\xff", "metadata": {"creationTimestamp": "\xff"}}', id="no text"),
        pytest.param(ODD, id="no time"),
    ],
)
async def test_whatever_answers_there_are_findings_to_the_end(monkeypatch, answer):
    monkeypatch.setattr(all_checks, "KubeClient", type("Told", (Something,), {"answer": answer}))
    monkeypatch.setattr(all_checks, "load_access", lambda *_: None)

    async def no_runtime(*_):
        return []

    monkeypatch.setattr(runtime_checks, "check_runtime", no_runtime)
    found: list[Finding] = []
    await run_checks(DoctorOptions(ask_registries=False), found.append)

    assert ("reports", "fix") == (found[-1].subject, found[-1].verdict)
    assert "is this a Kubernetes API server? See what its log says" == found[-1].advice
