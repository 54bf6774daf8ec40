"""Windows of samples that are packed into rows: which there are, and where the consumer is among their batches."""

from stoker.agenda.packed.agenda import PackedAgenda

__all__ = ["PackedAgenda"]
