"""What the doctor says of the accounts of an installation."""

import pytest

from lamina.services.doctor import permission_checks
from tests.unit.services.doctor.asked import Asked, refused


def answering(*, without=(), plus=()):
    """A server that allows what is needed, except *without*, and of the rest only *plus*."""
    needed = {str(right) for account in permission_checks.ACCOUNTS for right in account.needs}

    def answer(body, query):
        asked = body["spec"]["resourceAttributes"]
        name = "/".join(filter(None, (asked["resource"], asked["subresource"])))
        words = f"{asked['verb']} {name}"
        # The scheduler may delete ImageLayers, the agent may not.
        agent = "lamina-agents" in body["spec"]["user"]
        allowed = (words in needed and not (agent and words == "delete imagelayers") and words not in without) or (
            words in plus
        )
        return {"status": {"allowed": allowed}}

    return Asked(subjectaccessreviews=answer)


@pytest.mark.parametrize(
    ("server", "verdicts", "told"),
    [
        pytest.param(answering(), ["ok", "ok"], "has the permissions it needs", id="as shipped"),
        pytest.param(
            answering(without=["patch nodelayers/status"]),
            ["fix", "ok"],
            "lamina-agents/lamina-agent may not patch nodelayers/status",
            id="the agent cannot report",
        ),
        pytest.param(
            answering(plus=["list secrets"]), ["warn", "warn"], "may list secrets, which it never needs", id="too much"
        ),
        pytest.param(
            Asked(subjectaccessreviews=lambda body, query: {"status": {"allowed": False}}),
            ["fix", "fix"],
            "create nodelayers, patch nodelayers/status, create imagelayers",
            id="nothing applied",
        ),
        pytest.param(
            Asked(subjectaccessreviews=refused(403)),
            ["skip", "skip"],
            "you have no permission to review",
            id="not allowed to ask",
        ),
    ],
)
async def test_an_account_needs_all_of_its_rights_and_no_more(server, verdicts, told):
    found = await permission_checks.check_permissions(server)

    assert verdicts == [one.verdict for one in found]
    assert told in found[0].told


async def test_whoever_opened_all_pull_secrets_to_the_scheduler_is_told():
    agent, scheduler = await permission_checks.check_permissions(answering(plus=["get secrets"]))

    assert ("ok", "warn") == (agent.verdict, scheduler.verdict)
    assert "may get secrets, which it never needs" in scheduler.told


async def test_a_long_list_of_missing_rights_is_cut():
    found = await permission_checks.check_permissions(Asked(subjectaccessreviews=lambda body, query: {}))

    assert "11 more things" in found[1].told
