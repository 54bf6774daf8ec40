"""PyLoader's classes, on ``stoker.stream``. See docs/migrate/pyloader.md."""

from stoker.compat.pyloader.loader import DataLoader
from stoker.compat.pyloader.parts import DataCollator, DataReader, Dataset
from stoker.compat.pyloader.text import JsonLineDataReader, NumpyDataCollator, TextDataset

__all__ = [
    "DataCollator",
    "DataLoader",
    "DataReader",
    "Dataset",
    "JsonLineDataReader",
    "NumpyDataCollator",
    "TextDataset",
]
