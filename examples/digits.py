"""A two-layer classifier of handwritten digits: state in Variables, one trace for every batch size,
a checkpoint, and another process that restores it:  python examples/digits.py

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

    def __init__(self, hidden: int = 48) -> None:
        rng = np.random.default_rng(0)
        start = {"W1": rng.normal(0, 1 / 8, (64, hidden)), "b1": np.zeros(hidden),
                 "W2": rng.normal(0, hidden**-0.5, (hidden, 10)), "b2": np.zeros(10)}
        self.weights = {k: fusec.Variable(value) for k, value in start.items()}
        self.momenta = {k: fusec.Variable(0 * value) for k, value in start.items()}

    def layers(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        hidden = np.maximum(x @ self.weights["W1"] + self.weights["b1"], 0.0)
        scores = hidden @ self.weights["W2"] + self.weights["b2"]
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return hidden, powers / powers.sum(axis=1, keepdims=True)

    @fusec.jit(input_signature=BATCH)
    def train(self, x: np.ndarray, labels: np.ndarray) -> np.floating:
        """One step; the mean cross entropy before it.  Gradients: the chain rule by hand."""
        hidden, chances = self.layers(x)
        wanted = (labels[:, None] == np.arange(10)) * 1.0
        loss = -np.sum(wanted * np.log(chances + 1e-12)) / len(x)
        at_scores = (chances - wanted) / len(x)
        at_hidden = (at_scores @ np.transpose(self.weights["W2"])) * (hidden > 0)
        for name, gradient in {"W1": x.T @ at_hidden, "b1": at_hidden.sum(axis=0),
                               "W2": hidden.T @ at_scores, "b2": at_scores.sum(axis=0)}.items():
            self.momenta[name].assign(0.9 * self.momenta[name] + gradient)
            self.weights[name].assign_sub(0.1 * self.momenta[name])
        return loss

    @fusec.jit(input_signature=BATCH)
    def accuracy(self, x: np.ndarray, labels: np.ndarray) -> np.floating:
        return np.mean(self.layers(x)[1].argmax(axis=1) == labels)


def digits() -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    x, y = load_digits(return_X_y=True)
    return x[:1437] / 16, y[:1437], (x[1437:] / 16, y[1437:])


def main(epochs: int = 12, batch: int = 100) -> tuple[float, float]:
    """Accuracy on images that were not trained with, here and restored in another process."""
    model, (x, y, test) = Classifier(), digits()
    for epoch in range(epochs):  # the last batch has 37
        losses = [model.train(x[i:i + batch], y[i:i + batch]) for i in range(0, len(x), batch)]
        print(f"epoch {epoch}: loss {np.mean(losses):.3f}")
    accuracy = float(model.accuracy(*test))
    print(f"accuracy {accuracy:.4f}; traces of the training step: {model.train.trace_count}")
    saved = fusec.Checkpoint(model=model).save(tempfile.mkdtemp() + "/digits")
    restored = float(subprocess.check_output([sys.executable, __file__, str(saved)]))
    print(f"restored in another process: {restored:.4f}")
    return accuracy, restored


if __name__ == "__main__":
    if len(sys.argv) > 1:
        other = Classifier()
        fusec.Checkpoint(model=other).restore(sys.argv[1])
        print(float(other.accuracy(*digits()[2])))
    else:
        main()
