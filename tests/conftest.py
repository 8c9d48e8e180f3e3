"""Helpers beside this file are imported by name: checker, instances, reference, support."""

import pytest

pytest.register_assert_rewrite("checker")
