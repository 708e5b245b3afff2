"""Refusals of hard spread constraints, and what they have in common."""

from typing import Final

from lamina.model.decision import Refusal

NAME: Final = "PodTopologySpread"
REASON_SKEW: Final = "node(s) didn't match pod topology spread constraints"
REASON_LABEL: Final = REASON_SKEW + " (missing required label)"
REFUSALS: Final = {
    1: Refusal(NAME, (REASON_LABEL,), final=True),
    2: Refusal(NAME, (REASON_SKEW,), final=False),
}
LABEL, SKEW = REFUSALS
# Upstream's value for the emptiest domain if there is no domain.
NO_DOMAIN: Final = 2**31 - 1
