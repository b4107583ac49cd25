"""Clusters with TLS: connections of fusec's are Dask's, with its certificates, or none at all."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec

distributed = pytest.importorskip("distributed")

W0, W1 = "/job:worker/task:0", "/job:worker/task:1"


@pytest.fixture(scope="module")
def security(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("tls")
    key, cert = str(folder / "key.pem"), str(folder / "cert.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
         "-days", "2", "-subj", "/CN=localhost"], check=True, capture_output=True)
    files = {f"tls_{who}_{what}": path for who in ("client", "worker", "scheduler")
             for what, path in (("cert", cert), ("key", key))}
    return distributed.Security(tls_ca_file=cert, require_encryption=True, **files)


@pytest.fixture(scope="module")
def client(security: Any) -> Iterator[Any]:
    with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0",
            protocol="tls", security=security) as cluster, (
            distributed.Client(cluster, security=security)) as client:
        yield client


def test_steps_rings_and_handles_go_over_tls(client: Any) -> None:
    with fusec.cluster(client) as workers:
        assert all(address.startswith("tls://") for address in workers.workers)
        with fusec.device(W1):
            v = fusec.Variable(np.zeros(3), name="v")

        @fusec.jit
        def step(x: Any) -> Any:
            with fusec.device(W0):
                y = np.tanh(x)
            with fusec.device(W1):
                v.assign_add(y.sum(axis=0))
            return y.max()

        step(np.ones((2, 3)))
        want = np.full(3, 2 * np.tanh(1.0))
        np.testing.assert_allclose(v, want)
        np.testing.assert_allclose(pickle.loads(pickle.dumps(v)).numpy(), want)
        mean = fusec.replicate(lambda x: x.mean(axis=0))(np.arange(32.0).reshape(16, 2))
        np.testing.assert_allclose(mean, [15.0, 16.0])


def test_who_has_no_certificate_is_not_let_in(client: Any) -> None:
    (address, *_) = client.scheduler_info()["workers"]

    async def connect() -> None:
        comm = await distributed.comm.connect(address.replace("tls://", "tcp://"), timeout=2)
        await comm.write({"op": "fusec-session", "session": "s", "task": 0, "made_with": []})
        await comm.read()

    with pytest.raises(OSError):
        asyncio.run(connect())
