"""What every backend must do alike, on a cluster: the same tests as of all others."""

from __future__ import annotations

from tests.conformance.test_awkward_errors import *  # noqa: F403
from tests.conformance.test_epochs import *  # noqa: F403
from tests.conformance.test_errors import *  # noqa: F403
from tests.conformance.test_resume import *  # noqa: F403
from tests.conformance.test_streams import *  # noqa: F403
from tests.contracts.test_rows import *  # noqa: F403
