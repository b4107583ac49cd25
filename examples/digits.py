"""A two-layer classifier of handwritten digits: state in Variables, gradients by them, one trace
for every batch size, a checkpoint, and another process that restores it:  python examples/digits.py

Data: E. Alpaydin, C. Kaynak (UCI), as scikit-learn has it.  Extras: `bench`, `checkpoint`.
"""

import subprocess
import sys
import tempfile

import numpy as np
from sklearn.datasets import load_digits

import fusec

BATCH = (fusec.TensorSpec((None, 64)), fusec.TensorSpec((None,), np.int64))


class Classifier:
    """``softmax(relu(x W1 + b1) W2 + b2)``, trained by gradient descent with momentum."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        start = {"W1": rng.normal(0, 0.125, (64, 96)), "b1": np.zeros(96),
                 "W2": rng.normal(0, 0.1, (96, 10)), "b2": np.zeros(10)}
        self.weights = {k: fusec.Variable(value) for k, value in start.items()}
        self.momenta = {k: fusec.Variable(0 * value) for k, value in start.items()}

    def scores(self, x: np.ndarray) -> np.ndarray:
        w = self.weights
        return np.asarray(np.maximum(x @ w["W1"] + w["b1"], 0.0) @ w["W2"] + w["b2"])

    def cross_entropy(self, x: np.ndarray, labels: np.ndarray) -> np.float64:
        scores = self.scores(x)
        chosen = scores[np.arange(len(x)), labels]
        loss: np.float64 = np.mean(np.logaddexp.reduce(scores, axis=1) - chosen)
        return loss

    @fusec.jit(input_signature=BATCH)
    def train(self, x: np.ndarray, labels: np.ndarray) -> np.float64:
        """One step; the loss before it."""
        loss, gradients = fusec.value_and_grad(self.cross_entropy, wrt=self.weights)(x, labels)
        for name, gradient in gradients.items():
            self.momenta[name].assign(0.9 * self.momenta[name] + gradient)
            self.weights[name].assign_sub(0.1 * self.momenta[name])
        return loss

    @fusec.jit(input_signature=BATCH)
    def accuracy(self, x: np.ndarray, labels: np.ndarray) -> float:
        return float(np.mean(self.scores(x).argmax(axis=1) == labels))


def digits(test: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 64) and labels: 1437 to train with, or 360 others."""
    x, y = load_digits(return_X_y=True)
    order = np.split(np.random.default_rng(0).permutation(len(x)), [1437])[test]
    return x[order] / 16, y[order]


def main(epochs: int = 20, batch: int = 100) -> tuple[Classifier, float, float]:
    """A trained model, its accuracy here, and restored in another process."""
    model, (x, y), loss = Classifier(), digits(), np.float64(np.inf)
    for _ in range(epochs):
        for i in range(0, len(x), batch):  # the last batch has 37
            loss = model.train(x[i:i + batch], y[i:i + batch])
    here = float(model.accuracy(*digits(test=True)))
    saved = fusec.Checkpoint(model=model).save(tempfile.mkdtemp() + "/digits")
    restored = float(subprocess.check_output([sys.executable, __file__, str(saved)]))
    print(f"accuracy {here:.4f}, restored in another process {restored:.4f}")
    print(f"loss {loss:.3f}; traces of the training step: {model.train.trace_count}")
    return model, here, restored


if __name__ == "__main__":
    if sys.argv[1:]:
        fusec.Checkpoint(model=(model := Classifier())).restore(sys.argv[1])
        print(float(model.accuracy(*digits(test=True))))
    else:
        main()
