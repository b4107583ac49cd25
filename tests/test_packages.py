"""Functions of published NumPy packages, installed as they are, under ``fusec.jit``."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

# Profiles of a standard ocean: salinity, temperature (°C), pressure (dbar) by depth and station.
DEPTH = np.array([0.0, 10.0, 50.0, 200.0, 1000.0, 4000.0])
S = 34.5 + 0.4 * np.sin(np.arange(18.0)).reshape(6, 3)
T = 20.0 * np.exp(-DEPTH / 400)[:, None] + np.array([1.0, 2.5, 3.5])
P = np.repeat(DEPTH[:, None], 3, axis=1) * 1.01
LAT, LON = np.array([30.0, 41.5, -17.25, 60.0]), np.array([-30.0, -28.5, -40.0, 5.0])
# A day of weather: kelvin, percent, metres a second, hectopascal.
KELVIN = 285.0 + 15 * np.sin(np.linspace(0, 6, 24))
DEW = KELVIN - 4.0 - 3 * np.cos(np.linspace(0, 6, 24)) ** 2
HUMIDITY = 55.0 + 30 * np.cos(np.linspace(0, 6, 24))
WIND = 2.0 + 1.5 * np.cos(np.linspace(0, 9, 24))
RADIANT = KELVIN + 5.0
# Rotations.
Q, R = np.array([0.5, -0.1, 0.3, 0.8]), np.array([0.1, 0.9, -0.4, 0.2])
UNIT = Q / np.sqrt(Q @ Q)
AXIS = np.array([0.6, 0.0, 0.8])
TURN = np.array([[0.36, 0.48, -0.8], [-0.8, 0.6, 0.0], [0.48, 0.64, 0.6]])

CALLS: dict[str, dict[str, tuple[Any, ...]]] = {
    "seawater": {
        "adtg": (S, T, P), "alpha": (S, T, P), "aonb": (S, T, P), "beta": (S, T, P),
        "cp": (S, T, P), "dens0": (S, T), "dens": (S, T, P), "dpth": (P, 30.0), "fp": (S, P),
        "g": (LAT, 10.0), "pden": (S, T, P, 0.0), "pres": (DEPTH, 30.0), "ptmp": (S, T, P, 0.0),
        "salt": (S / 35, T, P), "svel": (S, T, P), "temp": (S, T, P, 0.0), "dist": (LAT, LON),
        "f": (LAT,), "satAr": (S, T), "satN2": (S, T), "satO2": (S, T),
        "swvel": (np.array([10.0, 100.0]), np.array([50.0, 1000.0])),
    },
    "thermofeel": {
        "calculate_relative_humidity_percent": (KELVIN, DEW),
        "calculate_saturation_vapour_pressure": (KELVIN,),
        "calculate_nonsaturation_vapour_pressure": (KELVIN, HUMIDITY),
        "scale_windspeed": (WIND, 2.0), "calculate_dew_point_from_relative_humidity": (
            HUMIDITY, KELVIN),
        "calculate_utci": (KELVIN, WIND, RADIANT, DEW), "calculate_wbgt_simple": (
            KELVIN, HUMIDITY),
        "calculate_wbt": (KELVIN, HUMIDITY), "calculate_bgt": (KELVIN, RADIANT, WIND),
        "calculate_wbgt": (KELVIN, RADIANT, WIND, DEW), "calculate_mrt_from_bgt": (
            KELVIN, RADIANT, WIND),
        "calculate_humidex": (KELVIN, DEW), "calculate_discomfort_index": (KELVIN, HUMIDITY),
        "calculate_normal_effective_temperature": (KELVIN, WIND, HUMIDITY),
        "calculate_apparent_temperature": (KELVIN, WIND, HUMIDITY),
        "calculate_wind_chill": (KELVIN, WIND),
        "calculate_heat_index_simplified": (KELVIN, HUMIDITY),
        "calculate_heat_index_adjusted": (KELVIN, DEW),
        "calculate_summer_simmer_index": (KELVIN, HUMIDITY),
        "calculate_relative_strain_index": (KELVIN, HUMIDITY),
    },
    "transforms3d.quaternions": {
        "quat2mat": (UNIT,), "mat2quat": (TURN,), "qmult": (Q, R), "qconjugate": (Q,),
        "qnorm": (Q,), "qinverse": (Q,), "qexp": (Q,), "qlog": (UNIT,), "qpow": (UNIT, 2.5),
        "rotate_vector": (AXIS, UNIT), "axangle2quat": (AXIS, 0.7, True),
        "nearly_equivalent": (Q, -Q), "quat2axangle": (UNIT,),
    },
    "transforms3d.axangles": {"axangle2mat": (AXIS, 0.7), "axangle2aff": (AXIS, 0.7)},
    "transforms3d.euler": {"euler2mat": (0.1, 0.2, 0.3), "mat2euler": (TURN,),
                           "euler2quat": (0.1, 0.2, 0.3)},
    "transforms3d.affines": {"compose": (AXIS, TURN, np.array([1.0, 2.0, 0.5]))},
    "transforms3d.zooms": {"zfdir2mat": (2.0, AXIS)},
    "transforms3d.reflections": {"rfnorm2mat": (AXIS,)},
    "transforms3d.shears": {"striu2mat": (AXIS,)},
    "transforms3d.utils": {"normalized_vector": (Q,), "vector_norm": (Q,)},
    "numpy_financial": {
        "fv": (0.05 / 12, 120.0, -100.0, np.array([-100.0, 50.0])),
        "pmt": (np.array([0.05, 0.0, 0.1]) / 12, 180.0, 2e5), "pv": (
            np.array([0.05, 0.04]) / 12, 120.0, -100.0, 15692.93),
        "nper": (np.array([0.07, 0.05]) / 12, -150.0, 8000.0),
        "ipmt": (0.0824 / 12, np.arange(12) + 1, 12.0, 2500.0),
        "ppmt": (0.0824 / 12, np.arange(12) + 1, 12.0, 2500.0),
        "npv": (0.08, np.array([-40.0, 5, 8, 12, 30])),
    },
}
CASES = [(package, name) for package, names in CALLS.items() for name in names]


def imported(package: str, name: str) -> Callable[..., Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # packages announce their successors
        try:
            return getattr(importlib.import_module(package), name)
        except ModuleNotFoundError as error:
            raise RuntimeError("these tests need: pip install -e '.[packages]'") from error


# From its release 1.1 on, an extension module computes these.
COMPILED = {("numpy_financial", "nper"), ("numpy_financial", "npv")}


def is_refused(package: str, name: str) -> bool:
    return (package, name) in COMPILED and (
        importlib.util.find_spec(f"{package}._cfinancial") is not None)


@pytest.mark.parametrize(("package", "name"), sorted(COMPILED))
def test_extension_modules_are_refused_by_name(package: str, name: str) -> None:
    if not is_refused(package, name):
        test_as_in_numpy(package, name)
        return
    with pytest.raises(fusec.UnsupportedError, match=rf"{package}.*{name} is not supported"):
        fusec.jit(imported(package, name))(*CALLS[package][name])


@pytest.mark.parametrize(("package", "name"), [c for c in CASES if not is_refused(*c)])
def test_as_in_numpy(package: str, name: str) -> None:
    function, args = imported(package, name), CALLS[package][name]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = function(*args)
    compiled = fusec.jit(function)
    for _ in range(2):
        assert_same(compiled(*args), want)


def assert_same(got: Any, want: Any) -> None:
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert_same(a, b)
        return
    assert type(got) is type(want)
    assert np.asarray(got).dtype == np.asarray(want).dtype
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)


def test_ten_functions_of_each_of_three_packages() -> None:
    counts: dict[str, int] = {}
    for package, names in CALLS.items():
        root = package.partition(".")[0]
        counts[root] = counts.get(root, 0) + len(names)
    assert sum(count >= 10 for count in counts.values()) >= 3
