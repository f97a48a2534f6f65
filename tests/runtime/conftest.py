"""Property tests meet many plan shapes: each would be compiled anew, so they run on the array code.

``tests/codegen`` shows that both variants agree, ``test_compiled.py`` runs a plan on the compiled one.
"""

from collections.abc import Iterator

import pytest
import user_windows

import workbench
from workbench.logical.user_windows import WINDOW_TYPES
from workbench.runtime.branches import grids, keytable


# Until the process ends, as folders of tests are no packages: what it runs behind these is on the array code, too.
@pytest.fixture(autouse=True, scope="package")
def array_code() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINQUERY_KERNELS", "generic")
        yield


@pytest.fixture(autouse=True, scope="module")
def keys_are_let_go() -> object:
    """The few keys of small streams are let go, and all is written in several blocks, as the many of long ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keytable, "FEW", 1)
        patch.setattr(keytable, "KEY_BLOCK", 2)
        patch.setattr(grids, "BLOCK", 2)
        yield


@pytest.fixture(scope="module")
def own_window_types() -> Iterator[None]:
    """The types of :mod:`user_windows` by their names, for a module."""
    for name, cls in user_windows.ALL.items():
        workbench.window_type(name, cls)
    yield
    WINDOW_TYPES._latest.clear()
