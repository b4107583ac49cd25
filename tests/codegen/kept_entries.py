"""Programs that keep an entry of an array for each iteration."""

from __future__ import annotations

from typing import Any

import numpy as np


def smoothed(u: Any) -> Any:
    new = u.copy()
    new[1:-1] = 0.25 * u[:-2] + 0.5 * u[1:-1] + 0.25 * u[2:]
    new[0] = new[1]
    new[-1] = u[-1] + new[-2]
    return new


def states(u: Any, steps: Any) -> Any:
    """The state that each iteration begins with."""
    kept = np.zeros((40, u.size))
    for k in range(steps):
        kept[k] = u
        u = smoothed(u)
    return kept, u


def results(u: Any, steps: Any) -> Any:
    """Each iteration keeps its state, and an operand of it."""
    kept, parts = np.zeros((40, u.size)), np.zeros((40, u.size - 1))
    for k in range(steps):
        difference = u[1:] - u[:-1]
        parts[k] = difference
        u = smoothed(u)
        u[1:] += 0.1 * difference
        kept[k] = u
    return kept, parts, u


def changed_afterwards(u: Any, steps: Any) -> Any:
    """A value that is kept and then changed in place, and an array that is changed itself."""
    kept, more = np.zeros((40, u.size)), np.zeros((40, u.size))
    for k in range(steps):
        y = u * 0.5 + k
        kept[k] = y
        y[0] = 5.0
        y *= 0.5
        more[k] = u
        u[k % 3] += y[1]
        u[1:] += 0.25 * y[1:]
    return kept, more, u


def in_turn(u: Any, steps: Any) -> Any:
    """Two states that change places, one of which becomes the other's old value."""
    kept, before = np.zeros((40, u.size)), np.zeros((40, u.size))
    last = u * 2
    for k in range(steps):
        kept[k] = u
        before[k] = last
        last, u = u, 2 * smoothed(u) - last
    return kept, before, u, last


def swapped(u: Any, steps: Any) -> Any:
    kept, v = np.zeros((40, u.size)), u + 1
    for k in range(steps):
        kept[k] = u
        u, v = v, u
    return kept, u, v


def one_for_two(u: Any, steps: Any) -> Any:
    """One new array is the next state of two, and kept."""
    kept, others, again = (np.zeros((40, u.size)) for _ in range(3))
    v = u + 1
    for k in range(steps):
        kept[k] = u
        others[k] = v
        w = smoothed(u) + v
        again[k] = w
        u = w
        v = w
    return kept, others, again, u, v


def what_it_was_made_of(u: Any, steps: Any) -> Any:
    """A state of which the next one is made in place is another's next state."""
    kept, v = np.zeros((40, u.size)), u + 1
    for k in range(steps):
        kept[k] = u
        v = smoothed(u)
        u = v.copy()
        u[2] = v[3] + k
    return kept, u, v


def while_it_moves(u: Any, least: Any) -> Any:
    """A loop whose length data decide, and whose test reads a state."""
    kept, norms = np.zeros((40, u.size)), np.zeros((40, u.size))
    k, rest = 0, 1e9
    v = np.abs(u) + 1.0
    while k < 40 and (rest > least or v.max() > 0.5):
        kept[k] = u
        norms[k] = v
        new = smoothed(u)
        rest = np.abs(new - u).sum()
        u, v = new, v * 0.5
        k += 1
    return kept, norms, u, v, k


def loops_in_loops(u: Any, steps: Any) -> Any:
    """Inner loops change the state that the outer one keeps, and keep it in turn."""
    outer, inner, count = np.zeros((40, u.size)), np.zeros((200, u.size)), 0
    for k in range(steps):
        outer[k] = u
        v = smoothed(u)
        for j in range(k % 3):
            inner[count] = v
            v = smoothed(v) + j
            count += 1
        u = v
    return outer, inner, u, count


def backwards(u: Any, steps: Any) -> Any:
    """The next state is a view of another array; the places go down."""
    kept, table = np.zeros((40, u.size)), np.zeros((40, u.size))
    for k in range(steps):
        kept[39 - k] = u
        table[k] = u[::-1]
        u = smoothed(u)[::-1]
    return kept, table, u


def on_both_sides(u: Any, steps: Any) -> Any:
    kept, u = np.zeros((40, u.size)), u * 1.0
    for k in range(steps):
        kept[k] = u
        if u[1] > 0.4:
            u = smoothed(u)
        else:
            u[1] += 0.3
    return kept, u


def rows_and_planes(u: Any, steps: Any) -> Any:
    """Other dtypes, and more axes."""
    plane = np.outer(u, u).astype(np.float32)
    kept, signs = np.zeros((40, u.size, u.size), np.float32), np.zeros((40, u.size), np.bool_)
    waves, wave = np.zeros((40, u.size), np.complex128), u * 1j
    for k in range(steps):
        kept[k] = plane
        waves[k] = wave
        signs[k] = u > 0.3
        wave = wave * 1j + smoothed(u)
        plane = plane.T * np.float32(0.5) + plane
        u = smoothed(u)
    return kept, signs, waves, plane


def read_again(u: Any, steps: Any) -> Any:
    """Entries are read by later iterations: no entry is by itself."""
    kept = np.zeros((41, u.size))
    kept[0] = u
    for k in range(steps):
        kept[k + 1] = smoothed(kept[k]) + kept[k // 2]
    return kept


def left_early(u: Any, steps: Any) -> Any:
    """The loop ends where data say so; the array after the last entry is not touched."""
    kept, k = np.ones((41, u.size)), 0
    while k < steps and u[0] > 1e-3:
        kept[k] = u
        u = 0.8 * smoothed(u)
        k += 1
    return kept, u, k


def exchanged(u: Any, steps: Any) -> Any:
    """One of two states that change places is kept."""
    kept, v = np.ones((41, u.size)), u * 2
    for k in range(steps):
        kept[k] = v
        v[1:] += 0.1 * u[:-1]
        u, v = v, u
    return kept, u, v


def arguments(kept: Any, u: Any, steps: Any) -> None:
    """Both arrays are arguments."""
    for k in range(steps):
        kept[k] = u
        u[:] = smoothed(u)


PROGRAMS = [
    left_early, exchanged,
    states, results, changed_afterwards, in_turn, swapped, one_for_two, what_it_was_made_of,
    while_it_moves, loops_in_loops, backwards, on_both_sides, rows_and_planes, read_again,
]
