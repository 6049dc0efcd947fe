# SPDX-License-Identifier: LGPL-2.1-or-later
"""What forms of Python frameworks have in common: frameworks.py runs them."""

import hashlib

FORMS = {}


def form(name, *modules):
    """Registers a function that returns the form's checks; it needs @modules."""

    def register(function):
        FORMS[name] = (function, modules)
        return function

    return register


def digest(array):
    import numpy

    array = numpy.ascontiguousarray(array)
    return f"{array.dtype}{list(array.shape)} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}"


def near(got, wanted, tolerance):
    """@got as a constant text if it is near @wanted: how it is rounded may differ."""
    import numpy

    error = float(numpy.max(numpy.abs(numpy.asarray(got) - numpy.asarray(wanted))))
    if not error <= tolerance:
        raise AssertionError(f"differs by {error:g}, at most {tolerance:g} was expected")
    return f"within {tolerance:g}"
