"""The least that must be kept: a minimum cut of a network of values.

Dinic's algorithm (*Soviet Math. Doklady* 11, 1970), on networks of a few thousand values.  That the
values a derivative needs of a program are such a cut PyTorch's ahead-of-time autograd uses, too.
"""

from __future__ import annotations

from collections import deque

INFINITE = 1 << 60


class Network:
    """Points 0 (the source), 1 (the sink), 2, …; arcs by number, the reverse of ``k`` is ``k ^ 1``.
    """

    def __init__(self, points: int) -> None:
        self.out: list[list[int]] = [[] for _ in range(points)]
        self.to: list[int] = []
        self.room: list[int] = []

    def add(self, start: int, end: int, room: int) -> None:
        for a, b, n in ((start, end, room), (end, start, 0)):
            self.out[a].append(len(self.to))
            self.to.append(b)
            self.room.append(n)

    def saturate(self) -> None:
        """A greatest flow from the source to the sink."""
        while (level := self._levels())[1] >= 0:
            left = [0] * len(self.out)
            while self._push(level, left):
                pass

    def _levels(self) -> list[int]:
        """Arcs from the source; -1 where it does not lead."""
        level = [-1] * len(self.out)
        level[0], queue = 0, deque([0])
        while queue:
            point = queue.popleft()
            for arc in self.out[point]:
                end = self.to[arc]
                if self.room[arc] and level[end] < 0:
                    level[end] = level[point] + 1
                    queue.append(end)
        return level

    def _push(self, level: list[int], left: list[int]) -> bool:
        """Send as much as one more path has room for; False where there is none."""
        path: list[int] = []
        point = 0
        while point != 1:
            arcs = self.out[point]
            while left[point] < len(arcs):
                arc = arcs[left[point]]
                if self.room[arc] and level[self.to[arc]] == level[point] + 1:
                    break
                left[point] += 1
            if left[point] < len(arcs):
                path.append(arcs[left[point]])
                point = self.to[path[-1]]
                continue
            if not path:
                return False
            point = self.to[path.pop() ^ 1]
            left[point] += 1
        sent = min(self.room[arc] for arc in path)
        for arc in path:
            self.room[arc] -= sent
            self.room[arc ^ 1] += sent
        return True

    def sink_side(self) -> set[int]:
        """The points from which more would reach the sink: behind the last of the least cuts."""
        found, queue = {1}, deque([1])
        while queue:
            for arc in self.out[queue.popleft()]:
                start = self.to[arc]
                if self.room[arc ^ 1] and start not in found:
                    found.add(start)
                    queue.append(start)
        return found
