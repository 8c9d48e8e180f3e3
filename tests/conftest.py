"""Helpers beside this file are imported by name: checker, instances, reference, support."""

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("checker")

# the same examples everywhere, and no test that depends on the clock
settings.register_profile("fenchel", max_examples=25, deadline=None, derandomize=True)
settings.load_profile("fenchel")
