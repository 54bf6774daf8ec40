"""Where Ray is not installed, this says so, and the other tests of this folder are not looked at."""

from __future__ import annotations

import pytest


def test_ray_is_installed():
    pytest.importorskip("ray", reason="pip install 'stoker[ray]' to test workers on Ray")
