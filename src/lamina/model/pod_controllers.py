"""Controllers whose pods are counted: how many of them should run, and who owns the controller."""

import msgspec

from lamina.model.pod import Owner


class PodController(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """An object that creates pods, directly or through another controller."""

    namespace: str
    name: str
    replicas: int | None = None
    """Number of pods that should run at the same time; None if the object states none."""
    completions: int | None = None
    """Number of pods of a Job that should succeed."""
    owner: Owner | None = None


class Deployment(PodController, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """An apps/v1 Deployment."""


class Job(PodController, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """A batch/v1 Job; its replicas are the parallelism."""


class CronJob(PodController, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """A batch/v1 CronJob."""
