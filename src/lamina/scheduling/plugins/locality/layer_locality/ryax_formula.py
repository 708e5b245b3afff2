"""
Ryax's original formula of layer locality, unchanged, for comparison.

    score = int(100 · mean over containers of min(1, bytes of the image's layers on the node / bytes of the image))

As published: only regular containers, all with equal weight; a layer is included in any position of the image. Layers
of an image are known only while a node holds it, so an image that no node holds scores 0 everywhere.
"""

import numpy as np

from lamina.layers.inventory import Inventory
from lamina.layers.not_held import held_bytes
from lamina.model.pod import Pod
from lamina.scheduling.contract.points import MAX_SCORE
from lamina.scheduling.state.columns import Ints
from lamina.scheduling.state.view import NodeView


def score(inventory: Inventory, pod: Pod, nodes: NodeView) -> Ints:
    """Return the score of each node."""
    total = np.zeros(len(nodes))
    for container in pod.containers:
        image = inventory.catalog.find(container.image)
        if image is None or not inventory.index.is_held(image.digest) or image.size == 0:
            continue
        wanted = inventory.index.plan(image)
        total += np.minimum(held_bytes(inventory.index, wanted, nodes.height)[nodes.rows] / image.size, 1.0)
    scores: Ints = (MAX_SCORE * (total / max(len(pod.containers), 1))).astype(np.int64)
    return scores
