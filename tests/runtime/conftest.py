"""Property tests meet many plan shapes: each would be compiled anew, so they run on the array code.

``tests/codegen`` shows that both variants agree, ``test_compiled.py`` runs a plan on the compiled one.
"""

import pytest


@pytest.fixture(autouse=True, scope="package")
def array_code() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINQUERY_KERNELS", "generic")
        yield
