"""Neural networks and learning from scratch."""

from __future__ import annotations

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def convolution_layer(x, weights, bias, stride):
    """Cross-correlation of a batch of images, ReLU and 2 x 2 max pooling.

    Source: Y. LeCun et al., Gradient-based learning applied to document recognition,
    Proc. IEEE 86 (1998) 2278.
    """
    batch, height, width, channels = x.shape
    filters, kh, kw, _ = weights.shape
    out_h = (height - kh) // stride + 1
    out_w = (width - kw) // stride + 1
    out = np.zeros((batch, out_h, out_w, filters), dtype=x.dtype)
    for i in range(out_h):
        for j in range(out_w):
            y0, x0 = i * stride, j * stride
            patch = x[:, y0 : y0 + kh, x0 : x0 + kw, :]
            for f in range(filters):
                out[:, i, j, f] = np.sum(patch * weights[f], axis=(1, 2, 3)) + bias[f]
    out = np.maximum(out, 0)
    ph, pw = out_h // 2, out_w // 2
    pooled = np.empty((batch, ph, pw, filters), dtype=x.dtype)
    for i in range(ph):
        for j in range(pw):
            window = out[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :]
            pooled[:, i, j, :] = window.max(axis=(1, 2))
    return pooled


def lstm(x, W, U, b):
    """Long short-term memory over a sequence, all hidden states.

    Source: S. Hochreiter, J. Schmidhuber, Neural Computation 9 (1997) 1735; with forget gates
    as in F. Gers et al., Neural Computation 12 (2000) 2451.
    """
    steps, batch, _ = x.shape
    hidden = U.shape[0]
    h = np.zeros((batch, hidden), dtype=x.dtype)
    c = np.zeros_like(h)
    history = np.zeros((steps, batch, hidden), dtype=x.dtype)
    for t in range(steps):
        gates = x[t] @ W + h @ U + b
        i = sigmoid(gates[:, :hidden])
        f = sigmoid(gates[:, hidden : 2 * hidden])
        g = np.tanh(gates[:, 2 * hidden : 3 * hidden])
        o = sigmoid(gates[:, 3 * hidden :])
        c = f * c + i * g
        h = o * np.tanh(c)
        history[t] = h
    return history, h, c


def attention(q, k, v, causal):
    """Scaled dot-product attention, masked (A. Vaswani et al., NeurIPS 2017)."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        mask = np.triu(np.ones(scores.shape[-2:], dtype=bool), 1)
        scores[..., mask] = -np.inf
    scores -= scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ v


def train_two_layers(X, y, W1, W2, rate, epochs):
    """Back propagation by hand for a small classifier; writes the weights.

    Source: D. E. Rumelhart, G. E. Hinton, R. J. Williams, Nature 323 (1986) 533.
    """
    n = X.shape[0]
    classes = W2.shape[1]
    targets = np.zeros((n, classes))
    targets[np.arange(n), y] = 1
    losses = []
    velocity1 = np.zeros_like(W1)
    velocity2 = np.zeros_like(W2)
    for epoch in range(epochs):
        hidden = np.tanh(X @ W1)
        logits = hidden @ W2
        logits = logits - logits.max(axis=1, keepdims=True)
        p = np.exp(logits)
        p /= p.sum(axis=1, keepdims=True)
        losses.append(-np.mean(np.log(p[np.arange(n), y])))
        d_logits = (p - targets) / n
        g2 = hidden.T @ d_logits
        d_hidden = d_logits @ W2.T * (1 - hidden**2)
        g1 = X.T @ d_hidden
        velocity1 = 0.9 * velocity1 - rate * g1
        velocity2 = 0.9 * velocity2 - rate * g2
        W1 += velocity1
        W2 += velocity2
    accuracy = np.mean(np.argmax(np.tanh(X @ W1) @ W2, axis=1) == y)
    return np.array(losses), accuracy


class Adam:
    """D. P. Kingma, J. Ba, Adam: a method for stochastic optimization, ICLR 2015."""

    def __init__(self, size, rate=0.01, beta1=0.9, beta2=0.999, eps=1e-8):
        self.rate = rate
        self.beta1 = beta1
        self.beta2 = beta2
        self.eps = eps
        self.m = np.zeros(size)
        self.v = np.zeros(size)
        self.t = 0

    def step(self, parameters, gradient):
        self.t += 1
        self.m = self.beta1 * self.m + (1 - self.beta1) * gradient
        self.v = self.beta2 * self.v + (1 - self.beta2) * gradient**2
        m = self.m / (1 - self.beta1**self.t)
        v = self.v / (1 - self.beta2**self.t)
        parameters -= self.rate * m / (np.sqrt(v) + self.eps)


def adam_rosenbrock(optimiser, x, steps):
    """Minimises Rosenbrock's valley with an `Adam` that keeps its moments; writes x."""
    for _ in range(steps):
        gradient = np.zeros_like(x)
        d = x[1:] - x[:-1] ** 2
        gradient[:-1] += -400 * x[:-1] * d - 2 * (1 - x[:-1])
        gradient[1:] += 200 * d
        optimiser.step(x, gradient)
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


class BatchNorm:
    """Batch normalisation with running statistics (S. Ioffe, C. Szegedy, ICML 2015)."""

    def __init__(self, features):
        self.gamma = np.ones(features)
        self.beta = np.zeros(features)
        self.mean = np.zeros(features)
        self.var = np.ones(features)
        self.momentum = 0.1
        self.training = True

    def __call__(self, x):
        if self.training:
            mean, var = x.mean(axis=0), x.var(axis=0)
            self.mean += self.momentum * (mean - self.mean)
            self.var += self.momentum * (var - self.var)
        else:
            mean, var = self.mean, self.var
        return self.gamma * (x - mean) / np.sqrt(var + 1e-5) + self.beta


def normalised_features(layer, batches):
    """Three training batches through a stateful layer, then one for evaluation."""
    outputs = []
    for batch in batches[:-1]:
        outputs.append(np.maximum(layer(batch), 0).mean())
    layer.training = False
    final = layer(batches[-1])
    layer.training = True
    return np.array(outputs), final


def kmeans(X, centres, tolerance):
    """Lloyd's algorithm until the centres rest; writes centres.

    Source: S. P. Lloyd, Least squares quantization in PCM, IEEE Trans. Inf. Theory 28 (1982) 129.
    """
    k = centres.shape[0]
    iteration = 0
    shift = np.inf
    labels = np.zeros(len(X), dtype=np.intp)
    while shift > tolerance and iteration < 50:
        distance = ((X[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        labels = distance.argmin(axis=1)
        shift = 0.0
        for j in range(k):
            members = X[labels == j]
            if len(members) == 0:
                continue
            new = members.mean(axis=0)
            shift = max(shift, np.linalg.norm(new - centres[j]))
            centres[j] = new
        iteration += 1
    inertia = distance[np.arange(len(X)), labels].sum()
    return labels, inertia, iteration


def perceptron(X, y, epochs):
    """Rosenblatt's perceptron, one example after another (Psychological Review 65 (1958) 386)."""
    w = np.zeros(X.shape[1])
    b = 0.0
    for epoch in range(epochs):
        mistakes = 0
        for xi, target in zip(X, y):
            if target * (xi @ w + b) <= 0:
                w += target * xi
                b += target
                mistakes += 1
        if mistakes == 0:
            break
    return w, b, mistakes


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


PROGRAMS = (
    (convolution_layer, lambda n: (normal(2, n, n, 3).astype(np.float32),
                                   normal(4, 3, 3, 3, seed=1).astype(np.float32),
                                   np.zeros(4, np.float32), 1), 7, 40, ""),
    (lstm, lambda n: (normal(n, 2, 5), normal(5, 32), normal(8, 32), normal(32)), 6, 1000,
     ""),
    (attention, lambda n: (normal(2, n, 8), normal(2, n, 8, seed=1), normal(2, n, 8, seed=2),
                           True), 10, 400, ""),
    (train_two_layers, lambda n: (normal(n, 6), np.arange(n) % 3, normal(6, 8), normal(8, 3),
                                  0.1, 10), 20, 2000, "published"),
    (adam_rosenbrock, lambda n: (Adam(n), np.zeros(n), 15), 6, 3000, "state"),
    (normalised_features, lambda n: (BatchNorm(4), normal(4, n, 4)), 10, 20000, "state"),
    (kmeans, lambda n: (normal(n, 2), normal(3, 2, seed=5), 1e-6), 40, 5000,
     "data-loop views"),
    (perceptron, lambda n: (normal(n, 3), np.where(normal(n, 3) @ [1, -2, 0.5] > 0, 1, -1), 8),
     20, 1000, "data-loop"),
)
