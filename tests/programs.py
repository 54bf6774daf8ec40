"""Programs that tests start, and that leave nobody behind."""

from __future__ import annotations

import os
import subprocess
import sys

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def run_python(
    arguments: list[str], seconds: float, variables: dict[str, str], stderr: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """Returns when nobody holds its standard output any more: no process that it has started is left.

    In a session of its own: if it takes too long, all its processes go.
    """
    with subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env=os.environ | variables,
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        except BaseException:
            os.killpg(process.pid, 9)
            raise
    return subprocess.CompletedProcess(arguments, process.returncode, output, errors)
