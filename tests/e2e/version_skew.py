"""The founding scenario on several versions of Kubernetes: the oldest that is promised, one in between, the newest."""

from typing import Any, Final

from tests.e2e.founding_api import play

NAME = "version-skew"
SUMMARY = "The founding scenario on Kubernetes 1.30, 1.33, 1.36 and 1.37."

VERSIONS: Final = ("1.30.14", "1.33.13", "1.36.3", "1.37.1")


def main() -> dict[str, Any]:
    """Play it on each; a version on which it does not hold raises."""
    found = [play(version) for version in VERSIONS]
    print()
    print(f"  {'kubernetes':<12}{'as simulated':<14}{'words as usual':<16}{'seconds':>8}")
    for one in found:
        words = one["described"] and one["pending"]
        print(f"  {one['kubernetes']:<12}{one['as_simulated']!s:<14}{words!s:<16}{one['seconds']:>8}")
    return {"versions": found}
