"""What the libraries behind the files keep for the life of the process is there before the first test; an S3."""

from __future__ import annotations

import fsspec
import fsspec.asyn
import pytest

from tests.files.conftest import pipe_of_pyarrow  # noqa: F401
from tests.files.servers import s3_server


@pytest.fixture(scope="module")
def s3_port():
    fsspec.asyn.get_loop()  # its thread stays for the life of the process
    with s3_server() as port:
        yield port


@pytest.fixture
def s3(s3_port, monkeypatch):
    """fsspec's file system. All that is told to it is told by the environment, which workers have too."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIDOFNOBODY",
        "AWS_SECRET_ACCESS_KEY": "s3cretOfNobody",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{s3_port}",
    }.items():
        monkeypatch.setenv(name, value)
    return fsspec.filesystem("s3")
