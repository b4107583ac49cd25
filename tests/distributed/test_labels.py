"""Functions over xarray's arrays: labels go where axes go, values are those of plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

xr = pytest.importorskip("xarray")
pytest.importorskip("dask.array")
RNG = np.random.default_rng(4)
TIMES = np.arange("2001-01-01", "2002-01-15", 5, dtype="datetime64[D]").astype("datetime64[ns]")


def field() -> Any:
    return xr.DataArray(
        RNG.standard_normal((len(TIMES), 4, 6)), dims=("time", "lat", "lon"), name="t2m",
        coords={"time": TIMES, "lat": [-60.0, -20.0, 20.0, 60.0], "height": 2.0,
                "name": ("lon", list("abcdef"))}, attrs={"units": "K"})


def program(x: Any) -> Any:
    return {"same": np.tanh(x * 2), "mean": x.mean(axis=0), "part": x[3:20], "sum": x.sum(),
            "turned": x.T, "steps": x[1:] - x[:-1], "given": x}


EXPECTED = {
    "same": lambda x: np.tanh(x * 2), "mean": lambda x: x.mean("time"),
    "part": lambda x: x[3:20], "sum": lambda x: x.sum(), "turned": lambda x: x.T,
    "steps": lambda x: (x[1:].drop_vars("time") - x[:-1].drop_vars("time")), "given": lambda x: x,
}


@pytest.mark.parametrize("chunks", [None, {"time": 38, "lat": 2}])
def test_labels_are_those_of_xarray(chunks: Any) -> None:
    x = field() if chunks is None else field().chunk(chunks)
    got = fusec.jit(program)(x)
    assert got["given"] is x
    for name, expected in EXPECTED.items():
        assert (got[name].chunks is None) == (chunks is None)
        want = expected(x)
        xr.testing.assert_allclose(got[name], want, rtol=1e-12)
        assert set(got[name].coords) == set(want.coords), name
        assert (got[name].attrs, got[name].name) == (want.attrs, want.name), name


def test_attributes_follow_xarrays_option() -> None:
    f, x = fusec.jit(lambda x, y: x + y), field()
    other = x.assign_attrs(units="C").rename("other")
    for keep in (True, False):
        with xr.set_options(keep_attrs=keep):
            got, want = f(x, other), x + other
            assert (got.attrs, got.name) == (want.attrs, want.name)


def test_axes_in_other_orders_keep_names_alone() -> None:
    f = fusec.jit(lambda x: (x[::2], np.sort(x, axis=0), np.cumsum(x, axis=0), x.ravel()))
    got = f(field())
    assert [a.dims for a in got] == [("time", "lat", "lon")] * 3 + [("dim_0",)]
    assert ["time" in a.coords for a in got] == [False, False, True, False]


def test_datasets() -> None:
    data = xr.Dataset({"a": field(), "b": field() + 1}, attrs={"title": "two"})
    got = fusec.jit(lambda x, k: x * k)(data.chunk({"time": 30}), 3.0)
    xr.testing.assert_allclose(got, data * 3.0)
    assert got.attrs == (data * 3.0).attrs and got.a.chunks is not None
    with pytest.raises(ValueError, match=r"different variables(.|\n)*choose those"):
        fusec.jit(lambda x, y: x + y)(data, data[["a"]])


def test_apply_ufunc_parallelized() -> None:
    x = field().chunk({"time": 30})
    f = fusec.jit(lambda x: np.tanh(x) + 1)
    got = xr.apply_ufunc(f, x, dask="parallelized", output_dtypes=[float])
    xr.testing.assert_allclose(got, xr.apply_ufunc(lambda x: np.tanh(x) + 1, x.compute()))
    assert got.chunks == x.chunks
    mean = xr.apply_ufunc(fusec.jit(lambda x: x.mean(axis=-1)), x, input_core_dims=[["lon"]],
                          dask="parallelized", output_dtypes=[float])
    xr.testing.assert_allclose(mean, x.mean("lon"))


def test_labels_that_do_not_fit_are_refused() -> None:
    x, f = field(), fusec.jit(lambda x, y: x - y)
    with pytest.raises(ValueError, match=r"labels of arguments differ(.|\n)*xarray\.align"):
        f(x, x.assign_coords(time=TIMES[::-1]))
    square = xr.DataArray(np.ones((4, 4)), dims=("lat", "lon"))
    with pytest.raises(ValueError, match=r"'lat' and 'lon' meet(.|\n)*test_labels\.py"):
        f(square, square.T)


def climatology(x: Any, month: Any, weights: Any) -> Any:
    """Differences from each month's mean, their mean over five steps, over the area, and their
    ninth decile in each map."""
    total, count = np.zeros((12, *x.shape[1:])), np.zeros(12)
    np.add.at(total, month, x)
    np.add.at(count, month, 1.0)
    away = x - (total / count[:, None, None])[month]
    steps = len(x) - 4
    smooth = (away[:steps] + away[1:-3] + away[2:-2] + away[3:-1] + away[4:]) / 5
    area = (away * weights[:, None]).sum(axis=(1, 2)) / (weights.sum() * x.shape[2])
    return away, smooth, area, np.quantile(away.reshape(len(x), -1), 0.9, axis=1)


def test_a_climatology_is_that_of_xarray() -> None:
    x = field().chunk({"time": 38})
    month = x.time.dt.month.values - 1
    weights = np.cos(np.deg2rad(x.lat.values))
    got = fusec.jit(climatology)(x, month, weights)
    away = x.groupby("time.month") - x.groupby("time.month").mean()
    area = away.weighted(xr.DataArray(weights, dims="lat"))
    want = [away, away.rolling(time=5).mean()[4:], area.mean(("lat", "lon")),
            away.quantile(0.9, ("lat", "lon"))]
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-10, atol=1e-12)
        assert ours.dims == theirs.dims
    xr.testing.assert_allclose(got[0].drop_vars("height"), want[0].drop_vars(["month", "height"]))


def labels_of(x: Any) -> Any:
    return x.dims, {name: coord.values.tolist() for name, coord in x.coords.items()}


def small() -> Any:
    return xr.DataArray(np.arange(12.0).reshape(3, 4), dims=("t", "z"),
                        coords={"t": [10, 20, 30], "z": [1, 2, 3, 4]})


def test_axes_of_length_one_keep_their_dimension() -> None:
    x = small()
    for f in (lambda a: a * 2, lambda a: np.where(a > 3, a, 0), lambda a: a + a[::-1] * 0):
        assert fusec.jit(f)(x[1:2]).dims == ("t", "z")
    assert labels_of(fusec.jit(lambda a: a[1:2] * 2)(x)) == labels_of(x[1:2])
    spread = fusec.jit(lambda a, b: a + b)(x[:1], np.ones((5, 4)))
    assert labels_of(spread) == (("dim_0", "z"), {"z": [1, 2, 3, 4]})


def summed(x: Any, i: Any) -> Any:
    total = np.zeros((2, 4))
    np.add.at(total, i, x)
    return total


def put(x: Any, size: int, at: int, start: int, stop: int) -> Any:
    y = np.zeros((size, 4))
    y[at:at + stop - start] = x[start:stop]
    return y


def test_elements_that_are_none_of_the_dimension_have_no_coordinates() -> None:
    x = small()
    joined = fusec.jit(lambda a: np.concatenate([a[1:2], np.zeros((1, 4))]))(x)
    assert joined.dims == ("t", "z") and "t" not in joined.coords
    total = fusec.jit(lambda a, i: summed(a, i))(x, np.array([1, 0, 1]))
    assert labels_of(total) == (("dim_0", "z"), {"z": [1, 2, 3, 4]})
    for part, known in (((3, 1, 1, 2), True), ((3, 0, 1, 2), False), ((2, 0, 0, 1), False),
                        ((4, 0, 0, 3), False)):
        assert ("t" in fusec.jit(lambda a, part=part: put(a, *part))(x).coords) == known


@pytest.mark.parametrize("chunks", [None, {"t": 2}])
def test_one_array_with_two_labels(chunks: Any) -> None:
    x = small() if chunks is None else small().chunk(chunks)
    got = fusec.jit(lambda a, b: (a * 2, b * 3))(x, x.rename(z="q"))
    assert [a.dims for a in got] == [("t", "z"), ("t", "q")]


def test_names_of_other_axes_are_free_ones() -> None:
    x = xr.DataArray(np.ones((3, 4)))  # dim_0, dim_1
    got = fusec.jit(lambda a, i: (a.T[:, i], a[i], a.T))(x, np.array([2, 0]))
    assert [a.dims for a in got] == [("dim_1", "dim_2"), ("dim_0", "dim_1"), ("dim_1", "dim_0")]


@pytest.mark.parametrize("chunks", [None, {"t": 2}])
def test_explain_takes_labelled_arrays(chunks: Any) -> None:
    x = small() if chunks is None else small().chunk(chunks)
    text = str(fusec.explain(fusec.jit(lambda a: np.tanh(a).sum(axis=0)), x))
    assert ("kernel" if chunks is None else "barrier: Sum") in text
    with pytest.raises(fusec.UnsupportedError, match=r"a Dataset(.|\n)*ds\['name'\]"):
        fusec.explain(lambda a: a + 1, xr.Dataset({"a": x}))


def test_an_error_says_what_the_function_sees_of_labels() -> None:
    x = xr.DataArray(np.ones(3), dims="x")
    with pytest.raises(TypeError, match=r"note: a value of class xarray\.DataArray is an array"):
        fusec.jit(lambda x: x.mean("x"))(x)
    with pytest.raises(IndexError, match="for each variable of a Dataset"):
        fusec.jit(lambda x: x["a"] * 2)(xr.Dataset({"a": x}))


@pytest.mark.parametrize("times", (3, 25))
def test_lists_that_loops_fill_have_labels(times: int) -> None:
    def recorded(x: Any, n: int) -> Any:
        losses, rows = [], []
        for _ in range(n):
            x = x - 0.5 * x.mean(axis=0)
            losses.append((x * x).mean())
            rows.append(x[0] * 2)
        return losses, rows

    whole = np.arange(12.0).reshape(4, 3)
    want = fusec.jit(recorded)(whole, times)
    for x in (xr.DataArray(whole, dims=("t", "c")),
              xr.DataArray(whole, dims=("t", "c")).chunk({"t": 2})):
        losses, rows = fusec.jit(recorded)(x, times)
        assert len(losses) == len(rows) == times
        assert all(isinstance(item, xr.DataArray) for item in (*losses, *rows))
        np.testing.assert_allclose([float(loss) for loss in losses], want[0], rtol=1e-12)
        np.testing.assert_allclose([row.values for row in rows], want[1], rtol=1e-12)


def test_arrays_of_two_names_give_none_in_blocks_too() -> None:
    x, y = (xr.DataArray(np.arange(6.0), dims="t", name=name) for name in ("a", "b"))
    f = fusec.jit(lambda x, y: x + y)
    for one, other in ((x, y), (x.chunk({"t": 2}), y.chunk({"t": 2}))):
        assert f(one, other).name is None
        assert f(one, one * 2).name == (one + one * 2).name == "a"
