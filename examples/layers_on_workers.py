"""A model in two parts on two workers, with several batches under way at a time: while one worker
has the second layer of a batch, the other has the first one of the next:
python examples/layers_on_workers.py

Sections 3.3 and 7 of the TensorFlow paper.  Extra: `distributed`.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import fusec


class TwoParts:
    """``tanh(x A) B``, each part's weights where it is computed."""

    def __init__(self, width: int = 64) -> None:
        rng = np.random.default_rng(0)
        with fusec.device("/job:worker/task:0"):
            self.A = fusec.Variable(rng.normal(0, 0.2, (8, width)), name="A")
        with fusec.device("/job:worker/task:1"):
            self.B = fusec.Variable(rng.normal(0, 0.2, (width, 1)), name="B")

    def loss(self, x: Any, y: Any) -> Any:
        with fusec.device("/job:worker/task:0"):
            hidden = np.tanh(x @ self.A)
        with fusec.device("/job:worker/task:1"):
            return np.mean(((hidden @ self.B)[:, 0] - y) ** 2)

    @fusec.jit
    def step(self, x: Any, y: Any) -> Any:
        """One step of gradient descent; what crosses is the hidden layer and its gradient."""
        loss, (a, b) = fusec.value_and_grad(self.loss, wrt=[self.A, self.B])(x, y)
        self.A.assign_sub(0.1 * a)
        self.B.assign_sub(0.1 * b)
        return loss

    @fusec.jit
    def predicted(self, x: Any) -> Any:
        with fusec.device("/job:worker/task:0"):
            hidden = np.tanh(x @ self.A)
        with fusec.device("/job:worker/task:1"):
            return (hidden @ self.B)[:, 0]


def main(steps: int = 200, batches: int = 16) -> tuple[float, float, float]:
    """The first and the last loss, and how far batches under way together are from one by one."""
    x = np.random.default_rng(1).normal(size=(256, 8))
    y = np.sin(x[:, 0]) * x[:, 1]
    with (LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local,
          Client(local) as client, fusec.cluster(client)):
        model = TwoParts()
        losses = [float(model.step(x, y)) for _ in range(steps)]
        parts = np.split(x, batches)
        with ThreadPoolExecutor(4) as pool:  # four calls under way
            together = np.concatenate(list(pool.map(model.predicted, parts)))
        gap = float(np.abs(together - model.predicted(x)).max())
    print(f"loss {losses[0]:.4f} to {losses[-1]:.4f}; batches in flight differ by {gap:.1e}")
    return losses[0], losses[-1], gap


if __name__ == "__main__":
    main()
