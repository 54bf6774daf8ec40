"""Streams and chunk files: races whose contenders are the rows of a table, held against Stoker."""

from __future__ import annotations

from benchmarks import chunk_files
from benchmarks.comparisons import Comparison, Row
from benchmarks.workloads import (
    ARROW_DATASET,
    BARE,
    BARE_BATCHES,
    CHUNKS,
    CHUNKS_ARROW,
    CHUNKS_SHUFFLED,
    HF_BATCHES,
    HF_STREAMING,
    STREAM,
    STREAMED,
    TINYLOADER_FRONT,
    TINYLOADER_ITEMS,
    TORCH_FILES,
    WEBDATASET,
)

_WARM_UP_S = 2.0  # the files are in the page cache already, having just been written


def _beside_the_stream(contender: str, about: str, least: float | None = None) -> Row:
    return Row(contender, about, STREAM, contender, least)


def _beside_in_order(contender: str, about: str, least: float | None = None) -> Row:
    return Row(contender, about, CHUNKS, contender, least)


_OURS = (
    _beside_in_order(CHUNKS, ""),
    _beside_in_order(CHUNKS_SHUFFLED, "files change places, and the samples of four mix"),
    _beside_in_order(CHUNKS_ARROW, 'the same with to="arrow": no string is made'),
    _beside_in_order(BARE, "the same reader in two bare processes, which hand nothing over", 0.9),
    _beside_in_order(BARE_BATCHES, "they also cut the same batches"),
)
_HF = (
    _beside_in_order(HF_STREAMING, "HF datasets, sample by sample; torch's DataLoader", 1.5),
    _beside_in_order(HF_BATCHES, "HF datasets, its batches of numpy arrays; torch's DataLoader", 1.5),
)
_ARROW = Row(ARROW_DATASET, "dataset.to_batches, two threads of one process", CHUNKS_ARROW, ARROW_DATASET)

CHUNK_COMPARISONS: dict[str, Comparison] = {
    comparison.workload.name: comparison
    for comparison in (
        Comparison(
            STREAMED["items"],
            "Items of a (3,512,512) float64 array and a label, one by one, 8 workers",
            "stoker.stream, against it",
            (
                _beside_the_stream(STREAM, "arrays that lie in shared memory"),
                _beside_the_stream(TINYLOADER_FRONT, "stoker.compat.tinyloader, the same arrays"),
                _beside_the_stream(TINYLOADER_ITEMS, "arrays that are copied out of it, as it asks", 3.0),
            ),
            warm_up=_WARM_UP_S,
        ),
        Comparison(
            STREAMED["jsonl"],
            "JSON lines in files of 8 MB, each with a text of 600 characters: 64 a batch",
            "Stoker, in order, against it",
            (
                *_OURS,
                *_HF,
                _beside_in_order(TORCH_FILES, "lines with msgspec; torch's DataLoader", 1.5),
                _ARROW,
            ),
            prepare=chunk_files.write_json_lines,
            warm_up=_WARM_UP_S,
        ),
        Comparison(
            STREAMED["parquet"],
            "Parquet in files of 8 MB, rows of 64 float32, a label and an id: 64 a batch",
            "Stoker, in order, against it",
            (
                *_OURS,
                *_HF,
                _beside_in_order(TORCH_FILES, "rows with pyarrow; torch's DataLoader", 1.5),
                _ARROW,
            ),
            prepare=chunk_files.write_parquet,
            warm_up=_WARM_UP_S,
        ),
        Comparison(
            STREAMED["tar"],
            "WebDataset's tars of 100 JPEGs of 256 × 256, decoded with Pillow: 32 a batch",
            "Stoker, in order, against it",
            (
                _beside_in_order(CHUNKS, ""),
                _beside_in_order(BARE, "the same reader in two bare processes, which hand nothing over"),
                _beside_in_order(WEBDATASET, "its pipeline and WebLoader", 1.0),
            ),
            prepare=chunk_files.write_tars,
            warm_up=_WARM_UP_S,
        ),
    )
}
