"""The four objectives of ADBench, in plain NumPy, from the published formulas.

F. Srajer, Z. Kukelova and A. Fitzgibbon, *A benchmark of selected algorithmic differentiation tools
on some problems in computer vision and machine learning*, Optimization Methods and Software 33
(2018), section 4; inputs are random, of the sizes in its tables.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import fusec
from fusec.core.code_roles import AS_USERS

FUSEC_ROLE = AS_USERS
Args = tuple[Any, ...]

# --- a mixture of Gaussians, with a Wishart prior on the precisions -----------------------------

GAMMA, WISHART_M = 1.0, 0  # of the prior


def log_sum_exp(x: np.ndarray) -> np.ndarray:
    """Along the first axis."""
    most = x.max(axis=0)
    return most + np.log(np.exp(x - most).sum(axis=0))


def precision_roots(q: np.ndarray, low: np.ndarray) -> np.ndarray:
    """The lower triangular ``Q`` (k, d, d): ``exp(q)`` (k, d) on their diagonals, ``low``
    (k, d (d - 1) / 2), column after column, below."""
    k, d = q.shape
    roots = np.zeros((k, d, d))
    start = 0
    for i in range(d):
        roots[:, i, i] = np.exp(q[:, i])
        roots[:, i + 1:, i] = low[:, start:start + d - i - 1]
        start += d - i - 1
    return roots


def mixture(
    alphas: np.ndarray, means: np.ndarray, q: np.ndarray, low: np.ndarray, x: np.ndarray
) -> Any:
    """The logarithm of the posterior of ``x`` (n, d), up to the prior's constant.

    ``alphas`` (k,): logarithms of weights, up to a constant; ``means`` (k, d).
    """
    n, d = x.shape
    roots = precision_roots(q, low)
    whitened = (x - means[:, None, :]) @ roots.transpose(0, 2, 1)
    inner = (alphas + q.sum(axis=1))[:, None] - 0.5 * (whitened ** 2).sum(axis=-1)
    prior = 0.5 * GAMMA ** 2 * (np.exp(2 * q).sum() + (low ** 2).sum()) - WISHART_M * q.sum()
    constant = -0.5 * n * d * math.log(2 * math.pi)
    return constant + log_sum_exp(inner).sum() - n * log_sum_exp(alphas) - prior


def mixture_args(rng: np.random.Generator, n: int, d: int, k: int) -> Args:
    return (rng.normal(size=k), rng.random((k, d)), 0.3 * rng.normal(size=(k, d)),
            0.3 * rng.normal(size=(k, d * (d - 1) // 2)), rng.normal(size=(n, d)))


# --- bundle adjustment --------------------------------------------------------------------------


def rotated(axes: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Points (n, 3) rotated about axes (n, 3), whose lengths are the angles (Rodrigues)."""
    angle = np.sqrt((axes ** 2).sum(axis=1, keepdims=True))
    unit = axes / angle
    along = (unit * x).sum(axis=1, keepdims=True)
    return x * np.cos(angle) + np.cross(unit, x) * np.sin(angle) + unit * along * (
        1 - np.cos(angle))


def reprojection(
    cameras: np.ndarray, points: np.ndarray, weights: np.ndarray, seen: np.ndarray
) -> np.ndarray:
    """The weighted errors (n, 2) of n observations: each of its own camera (n, 11: axis of
    rotation, centre, focal length, principal point, two radial distortions) and point (n, 3)."""
    inside = rotated(cameras[:, :3], points - cameras[:, 3:6])
    flat = inside[:, :2] / inside[:, 2:]
    r2 = (flat ** 2).sum(axis=1, keepdims=True)
    distorted = flat * (1.0 + cameras[:, 9:10] * r2 + cameras[:, 10:] * r2 ** 2)
    return weights[:, None] * (cameras[:, 6:7] * distorted + cameras[:, 7:9] - seen)


def reprojection_blocks(
    cameras: np.ndarray, points: np.ndarray, weights: np.ndarray, seen: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The parts of the Jacobian that are not 0: derivatives of each observation's two errors by its
    camera (n, 2, 11), point (n, 2, 3) and weight (n, 2).

    No observation depends on another's parameters, so that the backward passes from the sum of all
    first errors and from that of all second ones have them all.
    """
    errors, pull = fusec.vjp(reprojection, cameras, points, weights, seen)
    rows = []
    for k in range(2):
        unit = np.zeros(errors.shape)
        unit[:, k] = 1.0
        rows.append(pull(unit)[:3])
    return tuple(np.stack(pair, axis=1) for pair in zip(*rows, strict=True))


def reprojection_args(rng: np.random.Generator, n: int, cameras: int, points: int) -> Args:
    """Of each observation the camera, the point, the weight and the place in the image."""
    rows = np.concatenate([
        0.3 * rng.normal(size=(cameras, 3)), rng.normal(size=(cameras, 3)) - [0, 0, 8],
        1 + 0.1 * rng.random((cameras, 1)), 0.1 * rng.normal(size=(cameras, 2)),
        0.01 * rng.normal(size=(cameras, 2))], axis=1)
    return (rows[rng.integers(0, cameras, n)], rng.normal(size=(points, 3))[
        rng.integers(0, points, n)], 0.5 + rng.random(n), rng.normal(size=(n, 2)))


# --- a long short-term memory with diagonal weights ---------------------------------------------


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


def memory_step(
    weight: np.ndarray, bias: np.ndarray, hidden: np.ndarray, cell: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """One layer: ``weight`` and ``bias`` (4, b) of its gates, its state (b,), its input (b,)."""
    forget = sigmoid(x * weight[0] + bias[0])
    entry = sigmoid(hidden * weight[1] + bias[1])
    outlet = sigmoid(x * weight[2] + bias[2])
    change = np.tanh(hidden * weight[3] + bias[3])
    cell = cell * forget + entry * change
    return outlet * np.tanh(cell), cell


def memory(
    weights: np.ndarray, biases: np.ndarray, ends: np.ndarray, state: np.ndarray,
    sequence: np.ndarray,
) -> Any:
    """Minus the mean log likelihood of each character (b,) of a sequence (n, b) after those before.

    ``weights``, ``biases`` (layers, 4, b); ``ends`` (3, b): the scales of the input and the
    output, and the output's bias; ``state`` (layers, 2, b): hidden and cell at the start.
    """
    hidden, cell = state[:, 0].copy(), state[:, 1].copy()
    total = 0.0
    for t in range(len(sequence) - 1):
        x = sequence[t] * ends[0]
        for layer in range(len(weights)):
            hidden[layer], cell[layer] = memory_step(
                weights[layer], biases[layer], hidden[layer], cell[layer], x)
            x = hidden[layer]
        guess = x * ends[1] + ends[2]
        total += (sequence[t + 1] * (guess - np.log(np.exp(guess).sum() + 2.0))).sum()
    return -total / ((len(sequence) - 1) * sequence.shape[1])


def memory_args(rng: np.random.Generator, n: int, layers: int, b: int) -> Args:
    return (rng.normal(size=(layers, 4, b)), rng.normal(size=(layers, 4, b)),
            rng.normal(size=(3, b)), rng.normal(size=(layers, 2, b)),
            np.eye(b)[rng.integers(0, b, n)])


# --- tracking a hand ----------------------------------------------------------------------------

FINGERS, JOINTS = 5, 4  # of a finger: where it begins it bends two ways, else one; the tip is fixed


def turn(angle: Any, axis: int) -> np.ndarray:
    """The rotation (3, 3) about a coordinate axis."""
    a, b = (axis + 1) % 3, (axis + 2) % 3
    m = np.eye(3)
    m[a, a] = m[b, b] = np.cos(angle)
    m[a, b], m[b, a] = -np.sin(angle), np.sin(angle)
    return m


def bones(angles: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (bones, 3, 3) and places (bones, 3) of the joints, finger after finger.

    ``angles`` (fingers, 4): sideways and bending of the first joint, bending of the next two;
    ``lengths`` (fingers, joints, 3): from a joint to the next, at rest; from the wrist to the
    first.
    """
    turns, places = np.zeros((FINGERS, JOINTS, 3, 3)), np.zeros((FINGERS, JOINTS, 3))
    for f in range(FINGERS):
        m, at = turn(angles[f, 0], 2) @ turn(angles[f, 1], 0), lengths[f, 0]
        turns[f, 0], places[f, 0] = m, at
        for j in range(1, JOINTS):
            at = at + m @ lengths[f, j]
            if j < JOINTS - 1:
                m = m @ turn(angles[f, j + 1], 0)
            turns[f, j], places[f, j] = m, at
    return turns.reshape(-1, 3, 3), places.reshape(-1, 3)


def skin(
    pose: np.ndarray, lengths: np.ndarray, weights: np.ndarray, vertices: np.ndarray,
    seen: np.ndarray,
) -> np.ndarray:
    """The distances (n, 3) of a posed hand's vertices from their observations (n, 3).

    ``pose`` (26,): the axis of the hand's rotation, its place, and four angles a finger.
    ``weights`` (bones, n): how much a vertex goes with a bone; ``vertices`` (bones, n, 3): where it
    is from each joint at rest.
    """
    turns, places = bones(pose[6:].reshape(FINGERS, 4), lengths)
    each = vertices @ turns.transpose(0, 2, 1) + places[:, None, :]
    posed = (weights[:, :, None] * each).sum(axis=0)
    axis = np.zeros(posed.shape) + pose[:3]
    return rotated(axis, posed) + pose[3:6] - seen


def skin_args(rng: np.random.Generator, n: int) -> Args:
    lengths = 0.3 * rng.random((FINGERS, JOINTS, 3)) + np.array([0.0, 1.0, 0.0])
    lengths[:, 0, 0] += np.arange(FINGERS) - 2.0
    joints = np.cumsum(lengths, axis=1).reshape(-1, 3)
    rest = joints[rng.integers(0, len(joints), n)] + 0.2 * rng.normal(size=(n, 3))
    apart = rest - joints[:, None, :]
    weights = np.exp(-4 * (apart ** 2).sum(axis=-1))
    pose = np.concatenate([[0.2, -0.1, 0.3, 0.5, -0.5, 2.0], 0.4 * rng.random(20)])
    return (pose, lengths, weights / weights.sum(axis=0), apart,
            rest + 0.1 * rng.normal(size=(n, 3)))
