"""Packages of oceanography, weather, geodesy and hydrology."""

from __future__ import annotations

import numpy as np

from .case import Cases

N = 20_000
_grid = np.linspace(0.0, 1.0, N)
_depth = np.linspace(0.0, 4000.0, 200)
S = 34.5 + 0.4 * np.sin(np.arange(20_000.0)).reshape(200, 100)
T = 20.0 * np.exp(-_depth / 400)[:, None] + np.linspace(1.0, 3.5, 100)
P = np.repeat(_depth[:, None], 100, axis=1) * 1.01
LAT, LON = np.linspace(-60.0, 60.0, N), np.linspace(-170.0, 170.0, N)
ALT = 1000.0 * (1 + np.sin(40 * _grid))
KELVIN = 285.0 + 15 * np.sin(60 * _grid)
DEW = KELVIN - 4.0 - 3 * np.cos(60 * _grid) ** 2
HUMIDITY = 55.0 + 30 * np.cos(50 * _grid)
WIND = 2.0 + 1.5 * np.cos(90 * _grid)
RADIANT = KELVIN + 5.0
X, Y, Z = 4.2e6 + 2e4 * _grid, 1.7e5 + 3e4 * np.sin(9 * _grid), 4.78e6 + 1e4 * np.cos(7 * _grid)
E, U = 1e4 * np.sin(30 * _grid), 2e3 + 1e3 * np.cos(20 * _grid)
HERE = (42.0, -82.0, 200.0)
SEEN = np.abs(np.sin(11 * _grid)) * 30 + 1
SIMULATED = SEEN * (1 + 0.1 * np.cos(77 * _grid))

EARTH: dict[str, Cases] = {
    "seawater": Cases("seawater", {
        "adtg": (S, T, P), "alpha": (S, T, P), "beta": (S, T, P), "cp": (S, T, P),
        "dens0": (S, T), "dens": (S, T, P), "dpth": (P, 30.0), "fp": (S, P), "g": (LAT, 10.0),
        "pden": (S, T, P, 0.0), "ptmp": (S, T, P, 0.0), "salt": (S / 35, T, P), "svel": (S, T, P),
        "satO2": (S, T), "bfrq": (S, T, P), "gpan": (S, T, P), "dist": (LAT, LON), "f": (LAT,),
    }),
    "thermofeel": Cases("thermofeel", {
        "calculate_relative_humidity_percent": (KELVIN, DEW),
        "calculate_saturation_vapour_pressure": (KELVIN,),
        "calculate_utci": (KELVIN, WIND, RADIANT, DEW),
        "calculate_wbgt_simple": (KELVIN, HUMIDITY), "calculate_wbt": (KELVIN, HUMIDITY),
        "calculate_bgt": (KELVIN, RADIANT, WIND), "calculate_wbgt": (KELVIN, RADIANT, WIND, DEW),
        "calculate_humidex": (KELVIN, DEW), "calculate_wind_chill": (KELVIN, WIND),
        "calculate_normal_effective_temperature": (KELVIN, WIND, HUMIDITY),
        "calculate_apparent_temperature": (KELVIN, WIND, HUMIDITY),
        "calculate_heat_index_simplified": (KELVIN, HUMIDITY),
        "calculate_heat_index_adjusted": (KELVIN, DEW),
    }),
    "pymap3d": Cases("pymap3d", {
        "geodetic2ecef": (LAT, LON, ALT), "ecef2geodetic": (X, Y, Z),
        "geodetic2aer": (LAT, LON, ALT, *HERE), "aer2geodetic": (LON + 180, 33.0, ALT, *HERE),
        "geodetic2enu": (LAT, LON, ALT, *HERE), "enu2geodetic": (E, -E, U, *HERE),
        "ecef2enu": (X, Y, Z, *HERE), "enu2ecef": (E, -E, U, *HERE), "enu2aer": (E, -E, U),
        "aer2enu": (LON + 180, 33.0, ALT), "ecef2ned": (X, Y, Z, *HERE),
        "ecef2aer": (X, Y, Z, *HERE), "geodetic2spherical": (LAT, LON, ALT),
        "geodetic2nvector": (LAT, LON), "geodetic2rectifying": (LAT,),
        "geodetic2conformal": (LAT,), "geodetic2authalic": (LAT,), "meridian": (LAT,),
        "vincenty.vdist": (LAT, LON, LAT[::-1] * 0.5, LON * 0.9),
        "vincenty.vreckon": (LAT, LON, 1000 * ALT, 33.0), "lox.loxodrome_inverse": (
            LAT[:200], LON[:200], 12.0, 3.0), "haversine.anglesep": (LON, LAT, 3.0, 4.0),
        "haversine.anglesep_meeus": (LON, LAT, 3.0, 4.0),
    }),
    "navpy": Cases("navpy", {
        "angle2dcm": (0.1, 0.2, 0.3), "angle2quat": (LAT / 90, LON / 180, ALT / 1e4),
        "quat2dcm": (0.9, np.array([0.1, 0.3, 0.3])), "earthrad": (LAT,),
        "lla2ecef": (LAT, LON, ALT), "ecef2lla": (np.stack([X, Y, Z], 1),),
        "lla2ned": (LAT, LON, ALT, *HERE), "ned2lla": (np.stack([E, -E, U], 1), *HERE),
        "llarate": (WIND, WIND, WIND, LAT, ALT), "earthrate": (LAT,), "wrapToPi": (LON,),
        "skew": (np.array([1.0, 2.0, 3.0]),),
    }),
    "utm": Cases("utm", {
        "from_latlon": (LAT * 0.1 + 44.0, LON * 0.001 + 3.0),
        "to_latlon": (4e5 + E, 5.4e6 + E, 32, "U"), "latlon_to_zone_number": (44.0, 3.0),
    }),
    "haversine": Cases("haversine", {
        "haversine": ((45.7597, 4.8422), (48.8567, 2.3508)),
        "haversine_vector": (np.stack([LAT, LON], 1), np.stack([LAT[::-1], LON], 1)),
    }),
    "HydroErr": Cases("HydroErr", dict.fromkeys((
        "acc", "d", "d1", "dmod", "dr", "drel", "ed", "g_mean_diff", "h1_mahe", "h4_rmshe",
        "irmse", "kge_2009", "kge_2012", "lm_index", "mae", "male", "mape", "mase", "mdae", "me",
        "mse", "nrmse_mean", "nse", "nse_mod", "pearson_r", "r_squared", "rmse", "rmsle", "sa",
        "sga", "sid", "smape1", "spearman_r", "ve", "watt_m"), (SIMULATED, SEEN))),
    "hydroeval": Cases("hydroeval", dict.fromkeys((
        "nse", "kge", "kgeprime", "kgenp", "rmse", "mare", "pbias", "nse_c2m"),
        (SIMULATED, SEEN))),
}
