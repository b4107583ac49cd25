"""Dynamic programming and graph algorithms on integer tables."""

from __future__ import annotations

import numpy as np


def floyd_warshall(D):
    """All shortest paths with the way back.

    Source: R. W. Floyd, Algorithm 97: Shortest path, Comm. ACM 5 (1962) 345.
    """
    n = D.shape[0]
    D = D.copy()
    via = np.full((n, n), -1)
    for k in range(n):
        for i in range(n):
            through = D[i, k] + D[k]
            shorter = through < D[i]
            D[i, shorter] = through[shorter]
            via[i, shorter] = k
    return D, via


def levenshtein(a, b):
    """Edit distance of two integer strings, two rolling rows.

    Source: V. I. Levenshtein (1966); R. A. Wagner, M. J. Fischer, J. ACM 21 (1974) 168.
    """
    previous = np.arange(len(b) + 1)
    current = np.zeros(len(b) + 1, dtype=np.int64)
    for i in range(1, len(a) + 1):
        current[0] = i
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            current[j] = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + cost)
        previous, current = current, previous
    return previous[-1]


def smith_waterman(a, b, match, mismatch, gap):
    """Local alignment score, its end and the traceback's path.

    Source: T. F. Smith, M. S. Waterman, J. Mol. Biol. 147 (1981) 195.
    """
    n, m = len(a), len(b)
    H = np.zeros((n + 1, m + 1), dtype=np.int32)
    best = 0
    end_i = end_j = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            score = match if a[i - 1] == b[j - 1] else mismatch
            h = max(0, H[i - 1, j - 1] + score, H[i - 1, j] + gap, H[i, j - 1] + gap)
            H[i, j] = h
            if h > best:
                best, end_i, end_j = h, i, j
    path = np.zeros((n + m, 2), dtype=np.int64)
    length = 0
    i, j = end_i, end_j
    while i > 0 and j > 0 and H[i, j] > 0:
        path[length, 0] = i
        path[length, 1] = j
        length += 1
        score = match if a[i - 1] == b[j - 1] else mismatch
        if H[i, j] == H[i - 1, j - 1] + score:
            i -= 1
            j -= 1
        elif H[i, j] == H[i - 1, j] + gap:
            i -= 1
        else:
            j -= 1
    return H, best, path[:length]


def knapsack(weights, values, capacity):
    """0/1 knapsack with the chosen items (R. Bellman, Dynamic Programming, 1957)."""
    n = len(weights)
    table = np.zeros((n + 1, capacity + 1), dtype=np.int64)
    for i in range(n):
        w, v = weights[i], values[i]
        table[i + 1] = table[i]
        candidate = table[i, : capacity + 1 - w] + v
        table[i + 1, w:] = np.maximum(table[i, w:], candidate)
    taken = np.zeros(n, dtype=bool)
    left = capacity
    for i in range(n, 0, -1):
        if table[i, left] != table[i - 1, left]:
            taken[i - 1] = True
            left -= weights[i - 1]
    return table[n, capacity], taken


def viterbi(observations, start, transition, emission):
    """Most likely path of a hidden Markov model.

    Source: A. J. Viterbi, IEEE Trans. Inf. Theory 13 (1967) 260; L. R. Rabiner, Proc. IEEE 77
    (1989) 257, section III B.
    """
    steps = len(observations)
    states = len(start)
    transition = transition / transition.sum(axis=1, keepdims=True)
    emission = emission / emission.sum(axis=1)[:, np.newaxis]
    log_t = np.log(transition)
    log_e = np.log(emission)
    score = np.zeros((steps, states))
    back = np.zeros((steps, states), dtype=np.intp)
    score[0] = np.log(start) + log_e[:, observations[0]]
    for t in range(1, steps):
        for s in range(states):
            candidates = score[t - 1] + log_t[:, s]
            back[t, s] = np.argmax(candidates)
            score[t, s] = candidates[back[t, s]] + log_e[s, observations[t]]
    path = np.zeros(steps, dtype=np.intp)
    path[-1] = np.argmax(score[-1])
    for t in range(steps - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    visits = np.bincount(path, minlength=states)
    return path, score[-1].max(), visits


def dynamic_time_warping(x, y, window):
    """Sakoe and Chiba's banded alignment, IEEE Trans. ASSP 26 (1978) 43."""
    n, m = len(x), len(y)
    window = max(window, abs(n - m))
    cost = np.full((n + 1, m + 1), np.inf)
    cost[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(max(1, i - window), min(m, i + window) + 1):
            d = abs(x[i - 1] - y[j - 1])
            cost[i, j] = d + min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
    i, j = n, m
    length = 1
    path = np.zeros((n + m, 2), dtype=np.int64)
    path[0] = n - 1, m - 1
    while i > 1 or j > 1:
        step = np.argmin([cost[i - 1, j - 1], cost[i - 1, j], cost[i, j - 1]])
        if step == 0:
            i, j = i - 1, j - 1
        elif step == 1:
            i -= 1
        else:
            j -= 1
        path[length] = i - 1, j - 1
        length += 1
    return cost[n, m], path[:length][::-1]


def dijkstra(W, source, target):
    """Shortest paths from one node on a dense graph and the route to another.

    Source: E. W. Dijkstra, A note on two problems in connexion with graphs, Numer. Math. 1
    (1959) 269.
    """
    n = len(W)
    far = np.iinfo(np.int64).max // 2
    distance = np.full(n, far)
    parent = -np.ones(n, dtype=int)
    done = np.zeros(n, dtype=bool)
    distance[source] = 0
    for _ in range(n):
        u = np.argmin(np.where(done, far, distance))
        if distance[u] == far:
            break
        done[u] = True
        for v in range(n):
            if W[u, v] > 0 and not done[v]:
                length = distance[u] + W[u, v]
                if length < distance[v]:
                    distance[v] = length
                    parent[v] = u
    route = np.full(n, -1)
    hops = 0
    node = target
    while node != -1:
        route[hops] = node
        node = parent[node]
        hops += 1
    return distance, parent, route, hops


def matrix_chain(p):
    """Cheapest order of a chain of products.

    Source: T. H. Cormen et al., Introduction to Algorithms, 3rd ed., section 15.2.
    """
    n = len(p) - 1
    m = np.zeros((n, n), dtype=np.int64)
    s = np.zeros((n, n), dtype=np.int64)
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            m[i, j] = 2**62
            for k in range(i, j):
                q = m[i, k] + m[k + 1, j] + p[i] * p[k + 1] * p[j + 1]
                if q < m[i, j]:
                    m[i, j] = q
                    s[i, j] = k
    return m[0, n - 1], s


def union_find(edges, n):
    """Connected components with path halving (R. E. Tarjan, J. van Leeuwen, J. ACM 31 (1984))."""
    parent = np.arange(n)
    size = np.ones(n, dtype=np.int64)
    components = n
    for a, b in edges:
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a == b:
            continue
        if size[a] < size[b]:
            a, b = b, a
        parent[b] = a
        size[a] += size[b]
        components -= 1
    return components, parent


def longest_increasing(x):
    """Patience sorting: length and one longest increasing subsequence (M. L. Fredman, 1975)."""
    n = len(x)
    tails = np.zeros(n, dtype=np.int64)
    before = np.full(n, -1, dtype=np.int64)
    length = 0
    for i in range(n):
        low, high = 0, length
        while low < high:
            middle = (low + high) // 2
            if x[tails[middle]] < x[i]:
                low = middle + 1
            else:
                high = middle
        if low > 0:
            before[i] = tails[low - 1]
        tails[low] = i
        if low == length:
            length += 1
    result = np.zeros(length, dtype=x.dtype)
    k = tails[length - 1]
    for i in range(length - 1, -1, -1):
        result[i] = x[k]
        k = before[k]
    return result


def letters(n, seed, size=4):
    return np.random.default_rng(seed).integers(0, size, n)


def weights(n, seed=3):
    W = np.random.default_rng(seed).integers(1, 100, (n, n))
    np.fill_diagonal(W, 0)
    return W


def stochastic(n, m, seed):
    P = np.random.default_rng(seed).random((n, m)) + 0.1
    return P / P.sum(axis=1, keepdims=True)


PROGRAMS = (
    (floyd_warshall, lambda n: (weights(n),), 10, 120, ""),
    (levenshtein, lambda n: (letters(n, 0), letters(n + 2, 1)), 12, 250, ""),
    (smith_waterman, lambda n: (letters(n, 2), letters(n + 3, 3), 3, -3, -2), 12, 150,
     "published data-loop"),
    (knapsack, lambda n: (letters(n, 4, 9) + 1, letters(n, 5, 50), 3 * n), 10, 300, "views"),
    (viterbi, lambda n: (letters(n, 6, 3), stochastic(1, 4, 7)[0], stochastic(4, 4, 8),
                         stochastic(4, 3, 9)), 15, 2000, "published"),
    (dynamic_time_warping, lambda n: (np.sin(np.arange(n) * 0.4), np.sin(np.arange(n + 2) * 0.37),
                                      5), 15, 300, "published data-loop"),
    (dijkstra, lambda n: (weights(n), 0, n - 1), 12, 200, "published data-loop"),
    (matrix_chain, lambda n: (letters(n, 10, 40) + 5,), 9, 60, ""),
    (union_find, lambda n: (np.random.default_rng(11).integers(0, n, (n, 2)), n), 20, 3000,
     "data-loop"),
    (longest_increasing, lambda n: (np.random.default_rng(12).permutation(n),), 20, 3000,
     "data-loop"),
)
