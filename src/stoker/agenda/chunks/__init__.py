"""Groups of chunk files: which there are, what is made of those that were read, and where the consumer is."""

from stoker.agenda.chunks.agenda import ChunkAgenda

__all__ = ["ChunkAgenda"]
