"""Agendas: what there is to do, unit by unit, and where the consumer is in it. One for each kind of work.

Imports what stands above the engine, and of the engine what it asks and what it delivers. What an agenda of files must
find out with workers of their own (``surveys``) is given to it. That agenda, in ``chunks/``, is imported only by those
who have files.
"""

from stoker.agenda.agenda import Agenda, AgendaUnits, MixedAgenda, Progress, Unpacker
from stoker.agenda.asked_order import AskedOrder
from stoker.agenda.indexed import IndexedAgenda
from stoker.agenda.items import ItemAgenda

__all__ = ["Agenda", "AgendaUnits", "AskedOrder", "IndexedAgenda", "ItemAgenda", "MixedAgenda", "Progress", "Unpacker"]
