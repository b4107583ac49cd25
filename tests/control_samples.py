"""Small programs with branches and loops on data, as people write them."""

# ruff: noqa: B007, E701, E702, SIM108

from __future__ import annotations

import numpy as np


def f(x, n):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            s += x[i]
        else:
            s -= 1
    return s


def g(x):
    it = 0
    while x.sum() > 1.0:
        x = x * 0.5
        it += 1
        if it > 100:
            break
    return x, it


def h(a):
    a = a.copy()
    n = len(a)
    for i in range(1, n):
        key = a[i]
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return a


def bisect(lo, hi):
    while hi - lo > 1e-9:
        mid = 0.5 * (lo + hi)
        if mid * mid > 2.0: hi = mid
        else: lo = mid
    return lo


def early(x):
    for i in range(len(x)):
        if x[i] > 0.9:
            return i
    return -1


def jac(u):
    for it in range(50):
        un = u.copy()
        un[1:-1] = 0.5 * (u[:-2] + u[2:])
        u = un
    return u


def gs(u):
    n = len(u)
    for it in range(20):
        for i in range(1, n - 1):
            u[i] = 0.5 * (u[i - 1] + u[i + 1])
    return u


def thomas(a, b, c, d):
    n = len(d)
    cp = np.zeros(n); dp = np.zeros(n); x = np.zeros(n)
    cp[0] = c[0] / b[0]; dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x[n - 1] = dp[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


def fw(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


def fwv(d):
    d = d.copy()
    for k in range(d.shape[0]):
        d = np.minimum(d, d[:, k, None] + d[None, k, :])
    return d


def rows(A):
    out = np.empty(A.shape[0])
    for i in range(A.shape[0]):
        out[i] = (A[i] ** 2).sum()
    return out


def swap(u, v):
    u = u.copy(); v = v.copy()
    for i in range(31):
        v[1:-1] = u[:-2] + u[2:]
        v /= 3
        u, v = v, u
    return u


def newton(x):
    n = 0
    while True:
        fx = x**3 - 2
        if abs(fx) < 1e-10: break
        x = x - fx / (3 * x * x)
        n += 1
        if n >= 50:
            return -1.0, n
    return x, n


def collatz(n):
    c = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        c += 1
    return c


def total(xs):
    t = 0
    for x in xs:
        t = t + x
    return t


def enum(x):
    best = -1; bv = -np.inf
    for i, v in enumerate(x):
        if v > bv:
            best, bv = i, v
    return best, bv


def chain(x, lo, hi):
    c = 0
    for v in x:
        if lo < v < hi or v == 0.25:
            c += 1
            continue
        if v > 2: break
        c += 0
    else:
        c += 1000
    return c


def app(x):
    out = []
    for k in range(20):
        out.append(x * k)
    return sum(out)


def firbank(x):
    y = np.zeros(len(x) - 20)
    for k in range(20):
        y += 0.1 * k * x[k:len(x) - 20 + k]
    return y


def nested_if(x, t):
    if t > 0:
        if x[0] > 0: y = x * 2
        else: y = x - 1
    elif t < -5:
        y = -x
    else:
        y = x + t
    return y


def brk(x):
    s = 0.0
    for i in range(3):
        for v in x:
            if v < 0.01: break
            if v > .99: continue
            s += v * i
    return s


def retmid(x):
    for i in range(len(x)):
        for j in range(i):
            if x[i] < 0.3 and x[j] > 0.7:
                return i * 100 + j
    return -1


def selfstate(x):
    class A: pass
    a = 3
    n = 0
    while n < a:
        n += 1
        x = x * n
    return x, n


def rowsum(A):
    m = A[0]
    for i in range(1, A.shape[0]):
        if A[i].sum() > m.sum():
            m = A[i]
    return m * 1.0


def lu(A):
    A = A.copy(); n = len(A)
    for k in range(n - 1):
        for i in range(k + 1, n):
            f = A[i, k] / A[k, k]
            A[i] -= f * A[k]
    return A


def power(A, v):
    lam = 0.0
    for it in range(100):
        w = A @ v
        nrm = np.sqrt((w * w).sum())
        v = w / nrm
        if abs(nrm - lam) < 1e-12: break
        lam = nrm
    return lam, v


def heat(u, steps):
    for _ in range(steps):
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        u[1:-1, 1:-1] += 0.1 * (around - 4 * u[1:-1, 1:-1])
    return u


def solve_in_loop(A, b):
    for i in range(30):
        b = np.linalg.solve(A, b)
        b = b / np.abs(b).max()
    return b


def condexp(x):
    t = x.sum()
    return np.sqrt(t) if t > 0 else t * 0.5


def andor(x, y):
    a = x.sum() > 0 and y.sum() > 0
    b = x.sum() < 0 or y.sum() < 0
    return (1 if a else 0) + (10 if b else 20) + (100 if not a else 0)


def life(g):
    n, m = g.shape
    for t in range(40):
        h = g.copy()
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                c = 0
                for a in range(-1, 2):
                    for b in range(-1, 2):
                        c += g[i + a, j + b]
                c -= g[i, j]
                h[i, j] = 1 if c == 3 or (c == 2 and g[i, j] == 1) else 0
        g = h
    return g


def hist(x, n):
    h = np.zeros(n, int)
    for v in x:
        h[int(v * n)] += 1
    return h


def matmul(A, B):
    n = A.shape[0]
    C = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            C[i, j] = A[i] @ B[:, j]
    return C


def outer_swap(u, v):
    for i in range(25):
        u, v = v, u
    return u + 0, v + 0


def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def recurrence(x):
    for i in range(1, len(x)):
        x[i] = 0.5 * x[i - 1] + 0.25 * x[i]
    return x


def total_of(x):
    t = 0
    for v in x:
        t = t + v
    return t


def halve_until(x, low):
    n = 0
    while x.sum() > low:
        x = x * 0.5
        n += 1
    return x, n


def solve_until(A, b):
    n = 0
    while np.abs(b).max() > 1e-6:
        b = np.linalg.solve(A, b)
        n += 1
    return b, n


r = np.random.default_rng(0)
x = r.random(40)
D = r.random((12, 12)) * 10
S = D @ D.T + 50 * np.eye(12)
SAMPLES = [
    (f, (x, 3)), (g, (x,)), (h, (x,)), (bisect, (1.0, 2.0)),
    (bisect, (np.float64(1.0), np.float64(2.0))), (early, (x,)), (early, (x * 0.5,)),
    (jac, (x,)), (gs, (x.copy(),)), (thomas, (x, x + 3, x, x)), (fw, (D.copy(),)), (fwv, (D,)),
    (rows, (D,)), (swap, (x, x)), (newton, (1.0,)), (collatz, (np.int64(27),)), (collatz, (27,)),
    (total, (x,)), (enum, (x,)), (chain, (x, .2, .7)), (chain, (np.append(x, 3.0), .2, .7)),
    (app, (x,)), (firbank, (x,)),
    *[(nested_if, (s * x, t)) for s in (1, -1) for t in (1.0, -9.0, -1.0)],
    (brk, (x,)), (brk, (x - 0.2,)), (retmid, (x,)), (selfstate, (x,)), (rowsum, (D,)), (lu, (S,)),
    (power, (S, x[:12])), (heat, (r.random((20, 20)), 40)), (solve_in_loop, (S, x[:12])),
    (solve_until, (S, x[:12])),
    (condexp, (x,)), (condexp, (-x,)), (andor, (x, x)), (andor, (-x, x)),
    (life, (r.integers(0, 2, (12, 12)),)), (hist, (x, 7)), (matmul, (D, S)),
    (outer_swap, (x, 2 * x)), (gcd, (np.int64(48), np.int64(18))), (gcd, (48, 18)),
    (recurrence, (x,)), (halve_until, (x, 1.0)),
]
