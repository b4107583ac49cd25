"""A climatology from a Zarr store: fusec over Dask's blocks against xarray with Dask.

Usage: ``python -m tests.distributed.climatology [YEARS] [REPEATS]`` (zarr: ``fusec[bench]``)

Differences from each month's mean, their mean over five days, over the area, and their ninth decile
in each map, of daily maps in blocks of a year, on two processes.  The large results are reduced to
their largest element there, so that computing is measured and not how arrays come back.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import dask
import numpy as np
import xarray as xr

import fusec
from tests.distributed.test_labels import climatology

DAYS, SIDE, WINDOW = 365, 90, 5


def make_store(path: str, years: int) -> None:
    """Daily maps of so many years of 365 days, a block each."""
    times = np.arange(np.datetime64("1981-01-01"), np.datetime64("1981-01-01") + DAYS * years)
    field = xr.DataArray(
        dask.array.random.default_rng(0).normal(
            size=(DAYS * years, SIDE, SIDE), chunks=(DAYS, SIDE, SIDE)),
        dims=("time", "lat", "lon"), name="t2m", attrs={"units": "K"},
        coords={"time": times.astype("datetime64[ns]"), "lat": np.linspace(-89.0, 89.0, SIDE),
                "lon": np.arange(SIDE) * 360 / SIDE})
    field.to_dataset().to_zarr(path, mode="w")


def of_fusec(x: Any) -> list[Any]:
    away, smooth, area, decile = fusec.jit(climatology)(
        x, x.time.dt.month.values - 1, np.cos(np.deg2rad(x.lat.values)))
    return [abs(away).max(), abs(smooth).max(), area, decile]


def of_xarray(x: Any) -> list[Any]:
    months = x.groupby("time.month")
    away = months - months.mean()
    weights = xr.DataArray(np.cos(np.deg2rad(x.lat.values)), dims="lat")
    return [abs(away).max(), abs(away.rolling(time=WINDOW).mean()[WINDOW - 1:]).max(),
            away.weighted(weights).mean(("lat", "lon")), away.quantile(0.9, ("lat", "lon"))]


def timed(function: Callable[[Any], list[Any]], path: str) -> tuple[float, Any]:
    """Seconds from the store to the results, and these."""
    begun = time.perf_counter()
    results = dask.compute(*function(xr.open_zarr(path).t2m))
    return time.perf_counter() - begun, results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("years", type=int, nargs="?", default=4)
    parser.add_argument("repeats", type=int, nargs="?", default=5)
    given = parser.parse_args()
    from distributed import Client, LocalCluster

    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        path = f"{folder}/t2m.zarr"
        make_store(path, given.years)
        times: dict[str, list[float]] = {"fusec": [], "xarray": []}
        for _ in range(given.repeats):
            for name, function in (("fusec", of_fusec), ("xarray", of_xarray)):
                seconds, results = timed(function, path)
                times[name].append(seconds)
                print(f"{name}: {seconds:.2f} s", flush=True)
                if name == "fusec":
                    ours = results
            for a, b in zip(ours, results, strict=True):
                np.testing.assert_allclose(a.values, b.values, rtol=1e-10, atol=1e-12)
    fast, slow = (statistics.median(times[name]) for name in ("fusec", "xarray"))
    print(f"{given.years} years: fusec {fast:.2f} s, xarray {slow:.2f} s, {slow / fast:.1f} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
