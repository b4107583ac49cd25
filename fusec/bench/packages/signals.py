"""Packages of finance, colour, geophysics, optics, filters and statistics."""

from __future__ import annotations

import numpy as np

from .case import Cases

N = 20_000
_t = np.linspace(0.0, 1.0, N)
RGB = np.abs(np.stack([np.sin(9 * _t), np.cos(7 * _t), np.sin(5 * _t + 1)], 1))
XYZ = RGB * 0.8 + 0.1
LAB = np.stack([30 + 60 * RGB[:, 0], 80 * RGB[:, 1] - 40, 80 * RGB[:, 2] - 40], 1)
LAB2 = LAB[::-1] * 0.97 + 0.5
VP, VS, RHO = 2300 + 700 * _t, 1100 + 500 * _t, 2200 + 300 * _t
LAYERS = (2300.0, 1100.0, 2200.0, 2900.0, 1500.0, 2400.0)
ANGLES = np.linspace(0.0, 40.0, 400)
WAVE = np.sin(300 * _t) + 0.1 * np.cos(1700 * _t)
CURVE = np.stack([np.linspace(0, 10, 60), np.sin(np.linspace(0, 10, 60))], 1)
CURVE2 = CURVE + np.array([0.0, 0.3])
GROUPS, VALUES = (np.arange(N) * 7919) % 100, np.cos(900 * _t)
SPECTRA = np.abs(np.sin(np.arange(40_000.0))).reshape(50, 40, 20) + 0.1
STATE, COV = np.array([0.0, 1.0]), np.array([[2.0, 0.3], [0.3, 1.0]])
STEP, SEE, NOISE = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[1.0, 0.0]]), np.array([[0.5]])
MEASURED = [np.array([x]) for x in WAVE[:60]]

SIGNALS: dict[str, Cases] = {
    "numpy-financial": Cases("numpy_financial", {
        "fv": (0.05 / 12, 120.0, -100.0, -100.0 - _t), "pmt": (0.05 + _t / 100, 180.0, 2e5),
        "pv": (0.05 + _t / 100, 120.0, -100.0, 15692.93), "nper": (0.05 + _t / 100, -150.0, 800.0),
        "ipmt": (0.0824 / 12, np.arange(12) + 1, 12.0, 2500.0),
        "ppmt": (0.0824 / 12, np.arange(12) + 1, 12.0, 2500.0),
        "npv": (0.08, WAVE), "rate": (10.0, 0.0, -3500.0, 10000.0),
        "irr": (np.array([-100.0, 39, 59, 55, 20]),),
        "mirr": (np.array([-100.0, 39, 59, 55, 20]), 0.1, 0.12),
    }),
    "colour-science": Cases("colour", {
        "XYZ_to_Lab": (XYZ,), "Lab_to_XYZ": (LAB,), "XYZ_to_xyY": (XYZ,), "XYZ_to_Luv": (XYZ,),
        "XYZ_to_UCS": (XYZ,), "XYZ_to_Oklab": (XYZ,), "Oklab_to_XYZ": (XYZ,),
        "XYZ_to_IPT": (XYZ,), "XYZ_to_ICtCp": (XYZ,), "RGB_to_HSV": (RGB,), "HSV_to_RGB": (RGB,),
        "RGB_to_HSL": (RGB,), "RGB_to_CMY": (RGB,), "RGB_to_YCbCr": (RGB,),
        "difference.delta_E_CIE1976": (LAB, LAB2), "difference.delta_E_CIE1994": (LAB, LAB2),
        "difference.delta_E_CIE2000": (LAB, LAB2), "difference.delta_E_CMC": (LAB, LAB2),
        "models.eotf_sRGB": (RGB,), "models.eotf_inverse_sRGB": (RGB,),
        "models.eotf_ST2084": (RGB,),
        "temperature.CCT_to_xy_CIE_D": (4000 + 15000 * _t,),
        "temperature.xy_to_CCT_McCamy1992": (RGB[:, :2] * 0.2 + 0.25,),
        "colorimetry.planck_law": (400e-9 + 300e-9 * _t, 5000.0),
    }),
    "colorspacious": Cases("colorspacious", {
        "cspace_convert": (RGB, "sRGB1", "CIELab"), "deltaE": (RGB, RGB[::-1]),
        "ciecam02.CIECAM02Space.sRGB.XYZ100_to_CIECAM02": (100 * XYZ,),
        "basics.sRGB1_to_sRGB1_linear": (RGB,), "basics.XYZ100_to_sRGB1_linear": (100 * XYZ,),
    }),
    "bruges": Cases("bruges", {
        "rockphysics.moduli.bulk": (VP, VS, RHO), "rockphysics.moduli.pr": (VP, VS),
        "rockphysics.moduli.lam": (VP, VS, RHO), "rockphysics.moduli.mu": (VP, VS, RHO),
        "rockphysics.bounds.voigt_bound": (np.array([0.3, 0.7]), np.array([36.0, 2.2])),
        "rockphysics.smith_gassmann": (12e9, 36e9, 2.2e9, 0.1 + 0.2 * _t),
        "rockphysics.rho_brine": (60 + 20 * _t, 20.0, 0.1),
        "rockphysics.v_brine": (60 + 20 * _t, 20.0, 0.1),
        "reflection.reflectivity": (VP, VS, RHO), "reflection.zoeppritz_rpp": (*LAYERS, ANGLES),
        "reflection.akirichards": (*LAYERS, ANGLES), "reflection.shuey": (*LAYERS, ANGLES),
        "reflection.fatti": (*LAYERS, ANGLES), "reflection.bortfeld": (*LAYERS, ANGLES),
        "reflection.critical_angles": (2300.0, 2400.0, 2500.0),
        "filters.rotate_phase": (WAVE, 30.0, True), "filters.gaussian_kernel": (7,),
        "util.rms": (WAVE,), "util.moving_average": (WAVE, 9), "util.moving_avg_conv": (WAVE, 9),
    }),
    "miepython": Cases("miepython", {
        "efficiencies_mx": (1.5 - 0.1j, 5.0), "an_bn": (1.5 - 0.1j, 5.0),
        "S1_S2": (1.5 - 0.1j, 5.0, np.linspace(-1, 1, 50)),
        "i_unpolarized": (1.5 - 0.1j, 5.0, np.linspace(-1, 1, 50)),
        "small_sphere": (1.5 - 0.1j, 0.05), "rayleigh.efficiencies_mx": (1.5 - 0.1j, 0.05 + _t),
    }),
    "tmm": Cases("tmm", {
        "snell": (1.0, 1.5, 0.3), "interface_r": ("s", 1.0, 1.5, 0.3, 0.2),
        "R_from_r": (0.3 + 0.1j,),
        "coh_tmm": ("s", [1.0, 2.2, 1.5 + 0.1j, 1.0], [np.inf, 100.0, 300.0, np.inf], 0.1, 500.0),
        "unpolarized_RT": ([1.0, 2.2, 1.5, 1.0], [np.inf, 100.0, 300.0, np.inf], 0.1, 500.0),
    }),
    "filterpy": Cases("filterpy", {
        "kalman.predict": (STATE, COV, STEP, 0.1), "kalman.update": (
            STATE, COV, np.array([0.5]), NOISE, SEE),
        "kalman.unscented_transform": (np.array([[0.0, 1], [1, 1], [-1, 1], [0, 2], [0, 0]]),
                                       np.full(5, 0.2), np.full(5, 0.2)),
        "kalman.batch_filter": (STATE, COV, MEASURED, [STEP] * 60, [0.1 * np.eye(2)] * 60,
                                [SEE] * 60, [NOISE] * 60),
        "common.Q_discrete_white_noise": (2, 0.1, 0.5),
        "common.runge_kutta4": (1.0, 0.0, 0.1, lambda t, y: y - t),
        "stats.gaussian": (WAVE, 0.1, 0.5), "stats.multivariate_gaussian": (
            STATE, np.zeros(2), COV), "stats.mahalanobis": (STATE, np.zeros(2), COV),
        "stats.multivariate_multiply": (STATE, COV, np.zeros(2), COV),
        "stats.covariance_ellipse": (COV,),
        "discrete_bayes.normalize": (np.abs(WAVE[:100]),),
        "gh.optimal_noise_smoothing": (0.3,), "gh.critical_damping_parameters": (0.3,),
    }),
    "similaritymeasures": Cases("similaritymeasures", {
        "mae": (CURVE, CURVE2), "mse": (CURVE, CURVE2), "get_arc_length": (CURVE,),
        "poly_area": (WAVE, _t), "curve_length_measure": (CURVE, CURVE2),
        "frechet_dist": (CURVE, CURVE2), "dtw": (CURVE, CURVE2),
        "area_between_two_curves": (CURVE, CURVE2),
    }),
    "numpy-groupies": Cases("numpy_groupies", {
        **{f"aggregate_np {func}": (GROUPS, VALUES, func) for func in (
            "sum", "mean", "max", "std", "len", "cumsum", "nansum", "first")},
        "multi_arange": (np.arange(1, 30),),
    }),
    "spectral": Cases("spectral.algorithms", {
        "algorithms.ndvi": (SPECTRA, 3, 7), "algorithms.spectral_angles": (SPECTRA, SPECTRA[:3, 0]),
        "algorithms.unmix": (SPECTRA, SPECTRA[:3, 0]),
        "algorithms.orthogonalize": (SPECTRA[:4, 0],),
        "continuum.continuum_points": (SPECTRA[0, 0], np.arange(20.0)),
    }),
    "scikit-spatial": Cases("skspatial", {
        "measurement.area_triangle": ([0.0, 0], [0.0, 1], [1.0, 0.5]),
        "measurement.volume_tetrahedron": ([0.0, 0, 0], [3.0, 2, 1], [9.0, -2, 3], [2.0, 1, 7]),
        "measurement.area_signed": (RGB[:200, :2],),
    }),
}
