"""Refusals of InterPodAffinity by code."""

from typing import Final

from lamina.model.decision import Refusal

NAME: Final = "InterPodAffinity"
REASON_NOT_NEAR: Final = "node(s) didn't match pod affinity rules"
REASON_NOT_APART: Final = "node(s) didn't match pod anti-affinity rules"
REASON_KEPT_AWAY: Final = "node(s) didn't satisfy existing pods anti-affinity rules"
REFUSALS: Final = {
    1: Refusal(NAME, (REASON_NOT_NEAR,), final=True),
    2: Refusal(NAME, (REASON_NOT_APART,), final=False),
    3: Refusal(NAME, (REASON_KEPT_AWAY,), final=False),
}
NOT_NEAR, NOT_APART, KEPT_AWAY = REFUSALS
