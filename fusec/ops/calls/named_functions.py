"""Functions of libraries that are called when the code runs, by name."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

# Module → functions whose results' types follow from those of the arguments.
LIBRARY_CALLS: dict[str, str] = {
    "linalg": """
        block_diag cho_solve cho_solve_banded cholesky cholesky_banded circulant companion
        convolution_matrix cosm coshm det eig eig_banded eigh eigh_tridiagonal eigvals
        eigvals_banded eigvalsh eigvalsh_tridiagonal expm expm_cond expm_frechet fiedler
        fractional_matrix_power hankel hessenberg inv khatri_rao ldl leslie logm lstsq lu lu_factor
        lu_solve matmul_toeplitz matrix_balance norm orthogonal_procrustes pinv pinvh polar qr
        qr_multiply qz rq schur signm sinhm sinm solve solve_banded solve_circulant
        solve_continuous_are solve_continuous_lyapunov solve_discrete_are solve_discrete_lyapunov
        solve_lyapunov solve_sylvester solve_toeplitz solve_triangular solveh_banded sqrtm
        subspace_angles svd svdvals tanhm tanm toeplitz""",
    "linalg.lapack": " ".join(p + name for p in "sd" for name in (
        "gtsv", "gesv", "gbsv", "ptsv", "pbsv", "posv", "sysv", "potrf", "potrs", "potri", "getrf",
        "getrs", "getri", "geqrf", "trtrs", "trtri", "gttrf", "gttrs", "pttrf", "pttrs", "gtsvx")),
    "linalg.blas": " ".join(p + name for p in "sd" for name in (
        "dot", "nrm2", "asum", "gemv", "gemm", "symv", "symm", "syrk", "trsm")),
    "ndimage": """
        affine_transform binary_closing binary_dilation binary_erosion binary_fill_holes
        binary_opening black_tophat center_of_mass convolve convolve1d correlate correlate1d
        distance_transform_cdt distance_transform_edt gaussian_filter gaussian_filter1d
        gaussian_gradient_magnitude gaussian_laplace grey_closing grey_dilation grey_erosion
        grey_opening histogram label laplace map_coordinates maximum_filter maximum_filter1d
        median_filter minimum_filter minimum_filter1d morphological_gradient morphological_laplace
        percentile_filter prewitt rank_filter rotate shift sobel spline_filter spline_filter1d
        uniform_filter uniform_filter1d white_tophat zoom""",
    "signal": """
        convolve convolve2d correlate correlate2d detrend fftconvolve filtfilt hilbert lfilter
        medfilt medfilt2d oaconvolve resample savgol_filter sosfilt sosfiltfilt upfirdn wiener""",
    "fft": """
        fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft dct idct dst
        idst dctn idctn dstn idstn""",
    "fftpack": """
        fft ifft fft2 ifft2 fftn ifftn rfft irfft dct idct dst idst dctn idctn dstn idstn diff
        tilbert itilbert hilbert ihilbert cs_diff sc_diff ss_diff cc_diff shift""",
    "integrate": "cumulative_trapezoid simpson cumulative_simpson",
    "spatial.distance": "cdist pdist squareform",
}


def find_ufunc(name: str) -> np.ufunc:
    """The ufunc called ``add`` (NumPy's) or ``special.erf`` (SciPy's)."""
    if name.startswith("special."):
        import scipy.special

        return ufunc_behind(getattr(scipy.special, name.removeprefix("special.")))
    return getattr(np, name)


def ufunc_behind(function: Any) -> Any:
    """The ufunc that a function of ``scipy.special`` wraps where SCIPY_ARRAY_API is set; else the
    function."""
    inner = getattr(function, "__wrapped__", None)
    return inner if isinstance(inner, np.ufunc) else function


def find_scipy(name: str) -> Any:
    """The function called ``linalg.solve`` below ``scipy``; it is imported if need be."""
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(f"scipy.{module}"), function)
