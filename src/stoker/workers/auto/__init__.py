"""Workers that are added and retired while batches flow: how many there are is found out by measurement.

``tuning.py`` decides, by what ``period.py`` has measured and what ``headroom.py`` knows of the memory; ``crew.py`` does
it, with worker processes, and ``backend.py`` is what the engine sees of it.
"""

from stoker.workers.auto.backend import ElasticBackend
from stoker.workers.auto.site import ElasticSite

__all__ = ["ElasticBackend", "ElasticSite"]
