"""The classifier of digits.py trained asynchronously: a worker has the weights, two others each
compute gradients of whatever weights they last read, and nobody waits:
python examples/digits_stale.py

Section 7 of the TensorFlow paper.  Extras: `bench`, `checkpoint`, `distributed`.
"""

import threading
from typing import Any

import numpy as np
from digits import Classifier, digits
from distributed import Client, LocalCluster

import fusec


def gradients_on(model: Classifier, task: int) -> Any:
    """A function that computes gradients on a worker, of copies of the weights."""
    @fusec.jit
    def gradients(weights: dict[str, np.ndarray], x: np.ndarray, labels: np.ndarray) -> Any:
        def loss(w: dict[str, np.ndarray]) -> Any:
            scores = np.maximum(x @ w["W1"] + w["b1"], 0.0) @ w["W2"] + w["b2"]
            chosen = scores[np.arange(len(x)), labels]
            return np.mean(np.logaddexp.reduce(scores, axis=1) - chosen)

        with fusec.device(f"/job:worker/task:{task}"):
            return fusec.grad(loss)(weights)

    return gradients


@fusec.jit
def read(model: Classifier) -> dict[str, np.ndarray]:
    return {name: v * 1.0 for name, v in model.weights.items()}


@fusec.jit
def apply(model: Classifier, gradients: dict[str, np.ndarray]) -> None:
    for name, gradient in gradients.items():
        model.weights[name].assign_sub(0.1 * gradient)


def replica(model: Classifier, task: int, count: int, versions: list[int],
            staleness: list[int]) -> None:
    """One client thread's loop: read, compute there, apply gradients that may be stale by then."""
    x, y = (part[task - 1::2] for part in digits())
    gradients, rng = gradients_on(model, task), np.random.default_rng(task)
    for _ in range(count):
        seen, weights = versions[0], read(model)
        rows = rng.integers(0, len(x), 50)
        slopes = gradients(weights, x[rows], y[rows])
        staleness.append(versions[0] - seen)
        apply(model, slopes)
        versions[0] += 1


def main(steps: int = 400) -> tuple[float, list[int]]:
    """The accuracy, and of every step how many others the weights had had since it read them."""
    versions, staleness = [0], list[int]()
    with (LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=":0") as local,
          Client(local) as client, fusec.cluster(client)):
        with fusec.device("/job:worker/task:0"):
            model = Classifier()  # its Variables live there
        threads = [threading.Thread(target=replica, args=(
            model, task, steps, versions, staleness)) for task in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        accuracy = float(model.accuracy(*digits(test=True)))
    print(f"accuracy {accuracy:.4f}; steps by how stale: {np.bincount(staleness)}")
    return accuracy, staleness


if __name__ == "__main__":
    main()
