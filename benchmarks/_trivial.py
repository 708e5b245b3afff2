"""
A scheduler with almost no cost: it places each pod on the next node in turn that has room.

For benchmarks of the simulator alone, and as the smallest example of a decider. It counts cpu, memory and pods of each
node itself. A pod that finds no room waits until a pod has ended, and the pods behind it wait as well.
"""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any

from lamina.model.events import Event, NodeGone, NodeSeen, PodGone, PodSeen
from lamina.model.pod import DEFAULT_SCHEDULER, Pod, PodUid
from lamina.model.resources import CPU, MEMORY, PODS
from lamina.scheduling.contract.commands import Bind, Command

Room = list[int]
"""Free cpu, memory and pods."""


class Trivial:
    """Decides round robin."""

    names: Collection[str] = (DEFAULT_SCHEDULER,)
    trying = False
    asked_until = None

    def __init__(self) -> None:
        """Start without nodes and pods."""
        self.attempts = 0
        self._rooms: dict[str, Room] = {}
        self._turns: list[str] = []
        self._turn = 0
        self._waiting: deque[Pod] = deque()
        self._placed: dict[PodUid, tuple[str, int, int]] = {}
        self._reactions: dict[type[Event], Callable[[Any], None]] = {
            PodSeen: self._seen,
            PodGone: self._gone,
            NodeSeen: self._node,
            NodeGone: self._left,
        }

    def feed(self, *happened: Event) -> Sequence[Command]:
        """Apply events and bind the pods that find room."""
        for event in happened:
            react = self._reactions.get(type(event))
            if react is not None:
                react(event)
        if not self._waiting:
            self.attempts = 0
            return ()
        commands: list[Command] = []
        while self._waiting and (node := self._find(self._waiting[0])):
            commands.append(Bind(self._waiting.popleft(), node))
        self.attempts = len(commands)
        return commands

    def _seen(self, event: PodSeen) -> None:
        pod = event.pod
        if pod.finished:
            self._free(pod.uid)
        elif not pod.node_name and pod.uid not in self._placed:
            self._waiting.append(pod)

    def _gone(self, event: PodGone) -> None:
        self._free(event.uid)

    def _left(self, event: NodeGone) -> None:
        self._rooms.pop(event.name, None)
        self._turns = list(self._rooms)

    def _free(self, uid: PodUid) -> None:
        node, cpu, memory = self._placed.pop(uid, ("", 0, 0))
        room = self._rooms.get(node)
        if room is not None:
            room[0] += cpu
            room[1] += memory
            room[2] += 1

    def _node(self, event: NodeSeen) -> None:
        node = event.node
        if node.name not in self._rooms:
            given = dict(node.allocatable)
            self._rooms[node.name] = [given.get(CPU, 0), given.get(MEMORY, 0), given.get(PODS, 0)]
            self._turns = list(self._rooms)

    def _find(self, pod: Pod) -> str:
        cpu = memory = 0
        for name, amount in pod.requests:
            if name == CPU:
                cpu = amount
            elif name == MEMORY:
                memory = amount
        turns, rooms = self._turns, self._rooms
        for step in range(len(turns)):
            turn = (self._turn + step) % len(turns)
            room = rooms[turns[turn]]
            if room[0] >= cpu and room[1] >= memory and room[2] > 0:
                room[0] -= cpu
                room[1] -= memory
                room[2] -= 1
                self._turn = turn + 1
                self._placed[pod.uid] = turns[turn], cpu, memory
                return turns[turn]
        return ""
