"""Names of features that nodes declare and pods can require, as in Kubernetes 1.37."""

from typing import Final

RESTART_ALL_CONTAINERS: Final = "RestartAllContainersOnContainerExits"
"""Required by a rule that restarts all containers of the pod when one of them exits."""
HOST_NETWORK_USERS: Final = "UserNamespacesHostNetworkSupport"
"""Required by a pod with a user namespace of its own on the host's network."""

BIND_MOUNT_OPTIONS: Final = "VolumeBindMountOptions"
"""Required by a volume mount with ``bindMountOptions``. Clusters before 1.37 do not have that field."""

REQUIRABLE: Final = (RESTART_ALL_CONTAINERS, HOST_NETWORK_USERS, BIND_MOUNT_OPTIONS)
"""All features that a pod can require when it is scheduled; other declared features matter to updates of pods only."""
