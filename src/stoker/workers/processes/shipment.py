"""How a job travels to worker processes: its pickle in one sealed segment, its arrays in another, which all map.

So an in-memory dataset exists once however many workers there are.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Mapping

from stoker.errors import ShippingError
from stoker.memory import Segment
from stoker.workers.packing import PackedJob, pack, unpack
from stoker.workers.processes.sharing import Lending
from stoker.workers.processes.surroundings import Surroundings
from stoker.workers.worker import Job

log = logging.getLogger("stoker")


class Shipment:
    """A job that is sent to workers: its pickle in one segment, its arrays in another.

    It is pickled when the loader is made, so that what cannot travel is said early; again when workers are first
    started, so that they get the dataset as it is then; and again after ``renew``. Arrays that have not changed stay
    where they are. A loader that starts its workers anew for other reasons sends the same segments.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._lending = Lending()
        self._sent: tuple[Segment, Segment] | None = None
        self._is_current = False
        self._packed: PackedJob | None = self._pack()
        self.modules = self._packed.modules  # those worth importing before the fork

    def renew(self, job: Job) -> None:
        """Workers that are started from now on get this job, as it will be then."""
        self._job, self._is_current = job, False

    def segments(self) -> tuple[Segment, Segment]:
        """The job in shared memory: the pickle, and the arrays."""
        if not self._is_current:
            self._pack_again()
        if self._packed is not None:
            self._send(self._packed)
            self._packed = None
        assert self._sent is not None
        return self._sent

    def free(self) -> None:
        """Lets go of the segments; workers have them mapped for as long as they live."""
        for segment in self._sent or ():
            segment.close()
        self._lending.close()

    def _pack(self) -> PackedJob:
        with self._lending.allowed():
            return pack(self._job, self._lending.reduced)

    def _pack_again(self) -> None:
        """What could be pickled before may hold an open file by now: then workers get it as it was."""
        self._is_current = True
        try:
            self._packed = self._pack()
            self.modules = self._packed.modules
        except ShippingError as error:
            log.warning(
                "The dataset could be pickled before and cannot be now, so workers get it as it was before: %s",
                str(error),  # itself, it would keep its frames
            )

    def _send(self, packed: PackedJob) -> None:
        around = memoryview(pickle.dumps(Surroundings.here()))
        head = Segment.write([around, packed.pickled])
        if self._sent is None:
            self._sent = head, Segment.write(packed.arrays)
            return
        old_head, body = self._sent
        if not body.holds(packed.arrays):
            body.close()
            body = Segment.write(packed.arrays)
        old_head.close()
        self._sent = head, body


def load_job(segments: tuple[int, int], own: Mapping[str, str] | None = None) -> Job:
    """The job out of the segments with these descriptors, unpacked in the surroundings that it has in the consumer.

    All of them, since it is the same machine and the same user.

    ``own``: environment variables of this worker, which win over those.
    """
    head, body = map(Segment, segments)
    around, pickled = head.read()
    surroundings: Surroundings = pickle.loads(around)
    surroundings.apply_path()
    surroundings.apply_folder()
    surroundings.apply_environment(own or {})
    surroundings.apply_logging()
    surroundings.files.apply()
    job = unpack(pickled, body.read())
    surroundings.apply_logging()  # again: modules that were imported may have set up their own
    return job
