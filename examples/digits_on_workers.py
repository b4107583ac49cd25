"""The classifier of digits.py on two processes, each with half of every batch; the gradients are
added up in a ring, and every worker has the same weights:  python examples/digits_on_workers.py

The same bits for one, two or more workers.  Extras: `bench`, `checkpoint`, `distributed`.
"""

import numpy as np
from digits import Classifier, digits
from distributed import Client, LocalCluster

import fusec


def trained(workers: int, epochs: int, batch: int) -> Classifier:
    """A model that so many processes trained; its Variables are read from one of them."""
    model, (x, y) = Classifier(), digits()
    with (LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as local,
          Client(local) as client, fusec.cluster(client)):
        step = fusec.replicate(model.train)
        loss = float("nan")  # where nothing was trained
        for _ in range(epochs):
            for i in range(0, len(x), batch):
                loss = step(x[i:i + batch], y[i:i + batch])
        print(f"{workers} workers: loss {loss:.6f}")
        for variable in model.weights.values():
            variable.numpy()  # here now, and stays when the workers end
    return model


def main(epochs: int = 20, batch: int = 100) -> tuple[float, bool]:
    """The accuracy, and whether one worker leaves the bits that two leave."""
    two, one = (trained(workers, epochs, batch) for workers in (2, 1))
    same = all(np.array_equal(two.weights[name].numpy(), one.weights[name].numpy())
               for name in two.weights)
    accuracy = float(two.accuracy(*digits(test=True)))
    print(f"accuracy {accuracy:.4f}; the same bits: {same}")
    return accuracy, same


if __name__ == "__main__":
    main()
