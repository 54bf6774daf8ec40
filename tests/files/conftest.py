"""What the libraries behind the files keep for the life of the process is there before the first test."""

from __future__ import annotations

import io

import pyarrow.csv
import pytest


@pytest.fixture(scope="session", autouse=True)
def pipe_of_pyarrow():
    """Its reader of CSV makes a pipe for signals, once."""
    pyarrow.csv.read_csv(io.BytesIO(b"a\n1\n"))
