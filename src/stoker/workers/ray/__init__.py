"""Workers on other machines: actors of a Ray cluster, each with the dataset, whose results are copied into local slots.

``backend`` has the picture. Imported only where ``stoker.Ray`` is used, and so is Ray itself.
"""

from __future__ import annotations

from stoker.workers.ray.site import prepare

__all__ = ["prepare"]
