"""Why NumPy functions are not compiled, and which run as they are while a function is traced."""

from __future__ import annotations


def _by_name(groups: dict[str, str]) -> dict[str, str]:
    return {name: reason for reason, names in groups.items() for name in names.split()}


# Functions that take no array, so that there is nothing to compile: Python runs them once, while
# the function is traced.
PLAIN = _by_name({
    "asks about dtypes": """
        common_type isdtype issubdtype mintypecode promote_types typename broadcast_shapes finfo
        iinfo isscalar iterable isfortran get_include dtype __array_namespace_info__""",
    "reads files": "fromfile fromregex genfromtxt load loadtxt",
    "makes text of plain numbers": """
        base_repr binary_repr format_float_positional format_float_scientific""",
    "settings": """
        errstate geterr geterrcall getbufsize printoptions get_printoptions set_printoptions
        setbufsize seterr seterrcall show_config show_runtime info test""",
    "makes constants of plain numbers": """
        bartlett blackman hamming hanning kaiser tri indices tril_indices triu_indices
        mask_indices diag_indices ndindex ndenumerate fft.fftfreq fft.rfftfreq frombuffer
        fromfunction fromiter fromstring broadcast eye identity""",
    "classes to test against": """
        bool_ generic number integer signedinteger unsignedinteger inexact floating
        complexfloating flexible character ndarray memmap matrix recarray record void str_ bytes_
        object_ datetime64 timedelta64 datetime_data busdaycalendar poly1d nditer flatiter ufunc
        linalg.LinAlgError""",
})
REFUSED = _by_name({
    "it writes files": "save savetxt savez savez_compressed",
    "it makes text or dates": """
        array2string array_repr array_str busday_count busday_offset
        datetime_as_string is_busday isnat""",
    "the size of its result depends on data": """
        argwhere compress extract flatnonzero intersect1d nonzero bincount polydiv
        setdiff1d setxor1d trim_zeros union1d unique unique_all unique_counts unique_inverse
        unique_values""",
    "it raises errors that depend on data": "asarray_chkfinite",
    "whether its result is complex depends on data": "roots linalg.eig linalg.eigvals",
    "its dtype is not compiled": "longdouble float128 clongdouble complex256",
    "it needs the memory of the array": "nested_iters",
    "its scalars are a type of their own beside int64": "longlong ulonglong",
    "its results are arrays of objects, where no `astype` follows": "frompyfunc",
    "it makes objects of its own kind": "asmatrix bmat rec",
})
__all__ = ["PLAIN", "REFUSED"]
