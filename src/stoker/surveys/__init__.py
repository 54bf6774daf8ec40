"""Surveys: what must be known of chunk files before an epoch, found out by workers where it must be.

Into which parts files are cut, and how many samples these have. Imports ``streams``, of which they are made.
"""

from stoker.surveys.surveys import Surveys

__all__ = ["Surveys"]
