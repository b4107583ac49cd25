"""Why NumPy functions are not compiled, and which run as they are while a function is traced."""

from __future__ import annotations


def _by_name(groups: dict[str, str]) -> dict[str, str]:
    return {name: reason for reason, names in groups.items() for name in names.split()}


# They see no array of the call: Python runs them once, while the function is traced.
PLAIN = _by_name({
    "asks about dtypes": """common_type isdtype issubdtype mintypecode promote_types typename
        broadcast_shapes finfo iinfo isscalar iterable isfortran get_include dtype
        __array_namespace_info__""",
    "settings": """errstate geterr geterrcall getbufsize printoptions get_printoptions
        set_printoptions setbufsize seterr seterrcall show_config show_runtime info test""",
    "makes constants of plain numbers": """bartlett blackman hamming hanning kaiser tri indices
        tril_indices triu_indices mask_indices diag_indices ndindex fft.fftfreq fft.rfftfreq
        frombuffer fromfunction fromiter fromstring broadcast eye identity""",
    "classes to test against": """bool_ generic number integer signedinteger unsignedinteger inexact
        floating complexfloating flexible character ndarray memmap matrix recarray record void
        str_ bytes_ object_ datetime64 timedelta64 datetime_data busdaycalendar poly1d nditer
        flatiter ufunc linalg.LinAlgError""",
})
REFUSED = _by_name({
    "it reads or writes files": """fromfile fromregex genfromtxt load loadtxt save savetxt savez
        savez_compressed DataSource""",
    "it makes text or dates": """array2string array_repr array_str base_repr binary_repr
        format_float_positional format_float_scientific busday_count busday_offset
        datetime_as_string is_busday isnat""",
    "the size of its result depends on data": """argwhere compress extract flatnonzero intersect1d
        nonzero setdiff1d setxor1d trim_zeros union1d unique unique_all unique_counts
        unique_inverse unique_values delete tril_indices_from triu_indices_from
        histogram_bin_edges diag_indices_from""",
    "it raises errors that depend on data": "nanargmax nanargmin choose asarray_chkfinite",
    "it needs the bits of floats, which no op gives yet": "frexp ldexp nextafter spacing",
    "it needs a loop whose length depends on data": "gcd lcm polydiv",
    "its results are complex, and complex numbers are not compiled yet": """complex64 complex128
        cdouble clongdouble csingle complex256 sort_complex roots poly imag linalg.eig
        linalg.eigvals""",
    "its dtype is not compiled": "float16 half longdouble float128",
    "it needs the memory of the array": """from_dlpack require shares_memory nested_iters packbits
        unpackbits asfortranarray""",
    "it runs Python once per element": "frompyfunc vectorize fromfunction",
    "it makes objects of its own kind": "asmatrix bmat rec",
    "it tests positions, which no op checks yet": """put put_along_axis ravel_multi_index
        unravel_index ix_""",
})
__all__ = ["PLAIN", "REFUSED"]
