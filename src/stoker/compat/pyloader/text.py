"""PyLoader's parts for text, ready-made: JSON lines, a vocabulary, numpy arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

import stoker
from stoker.compat.arguments import checked_count
from stoker.compat.pyloader.parts import DataCollator, DataReader, Dataset


class JsonLineDataReader(DataReader):
    """Reads files with one JSON object a line, all with the same keys. Empty lines are skipped.

    Raises:
        ChunkError: A line is not such an object. The message names the file and the line.
    """

    def read_file(self, path: str) -> tuple[dict[str, list[Any]], int]:
        samples: dict[str, list[Any]] = {}
        count = 0
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.isspace():
                    continue
                record = _record(line, f"{path}, line {number}")
                samples = samples or {key: [] for key in record}
                if record.keys() != samples.keys():
                    raise stoker.ChunkError(
                        f"{path}, line {number}: its keys are {sorted(record)}, those before it had {sorted(samples)}: "
                        f"use the same in each line of a file"
                    )
                for key, value in record.items():
                    samples[key].append(value)
                count += 1
        return samples, count


class TextDataset(Dataset):
    """Turns words into numbers: texts are split at white space, and padded to the longest of their batch.

    A token's id is its line in the vocabulary, from 0. If ``pad_token`` or ``unk_token`` have no line there, they come
    before all lines.

    Args:
        vocab_file: A file with one token on each line, in UTF-8.
        text_keys: The keys whose values are texts. All others stay as they are.
        max_seq_len: The number of tokens of a text that are used, from its beginning. None: all.
        max_vocab_size: The number of tokens of the vocabulary that are used, from its beginning, including those for
            padding and unknown words. None: all.
        pad_token: The token that short texts are padded with.
        unk_token: The token for words that are not in the vocabulary.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line of it is not one token, or comes twice, or a value is wrong.
    """

    def __init__(
        self,
        vocab_file: str | os.PathLike[str],
        text_keys: Iterable[str] = ("text",),
        *,
        max_seq_len: int | None = None,
        max_vocab_size: int | None = None,
        pad_token: str = "[PAD]",
        unk_token: str = "[UNK]",
    ) -> None:
        self.text_keys = _checked_keys(text_keys)
        self.max_seq_len = None if max_seq_len is None else checked_count("max_seq_len", max_seq_len)
        size = None if max_vocab_size is None else checked_count("max_vocab_size", max_vocab_size)
        found = _tokens_of(vocab_file)
        tokens = [token for token in dict.fromkeys((pad_token, unk_token)) if token not in found] + list(found)
        self._ids = {token: number for number, token in enumerate(tokens[:size])}
        least = 1 + max(tokens.index(pad_token), tokens.index(unk_token))
        if len(self._ids) < least:
            raise ValueError(
                f"max_vocab_size={size} leaves out pad_token={pad_token!r} or unk_token={unk_token!r}: "
                f"pass {least} or more"
            )
        self.pad_id, self.unk_id = self._ids[pad_token], self._ids[unk_token]

    @property
    def vocab_size(self) -> int:
        """The number of tokens, which is the number of rows that an embedding needs."""
        return len(self._ids)

    def batch_encode(self, batch_data: dict[str, list[Any]]) -> dict[str, list[Any]]:
        missing = [key for key in self.text_keys if key not in batch_data]
        if missing:
            raise KeyError(f"text_keys {missing} are not among the keys that were read, {sorted(batch_data)}")
        return {
            key: self._padded(key, values) if key in self.text_keys else values for key, values in batch_data.items()
        }

    def _padded(self, key: str, texts: list[Any]) -> list[list[int]]:
        for text in texts:
            if not isinstance(text, str):
                raise TypeError(f"{key!r} is to be text, but a sample has {text!r}: leave the key out of text_keys")
        encoded = [[self._ids.get(word, self.unk_id) for word in text.split()[: self.max_seq_len]] for text in texts]
        longest = max(map(len, encoded), default=0)
        return [ids + [self.pad_id] * (longest - len(ids)) for ids in encoded]


class NumpyDataCollator(DataCollator):
    """Makes each list a numpy array."""

    def collate_batch(self, batch_data: dict[str, list[Any]]) -> dict[str, Any]:
        return {key: _array(key, values) for key, values in batch_data.items()}


def _record(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:  # also where it is not UTF-8
        raise stoker.ChunkError(f"{where} is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise stoker.ChunkError(f'{where} holds {type(record).__name__}: it must hold an object, as in {{"text": ...}}')
    return record


def _checked_keys(keys: Any) -> tuple[str, ...]:
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise TypeError(
            f"text_keys={keys!r}: pass a list of keys, as in [{keys if isinstance(keys, str) else 'text'!r}]"
        )
    return tuple(keys)


def _tokens_of(vocab_file: Any) -> dict[str, int]:
    """Each with its line. A dict: they are looked for in it."""
    found: dict[str, int] = {}
    if not os.path.isfile(vocab_file):
        raise FileNotFoundError(f"vocab_file={vocab_file!r}: there is no such file; make one, with a token a line")
    with open(vocab_file, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.split()
            if len(words) != 1:
                raise ValueError(f"{vocab_file}, line {number} has {len(words)} words: put one token on each line")
            if words[0] in found:
                raise ValueError(f"{vocab_file}: {words[0]!r} is in lines {found[words[0]]} and {number}: list it once")
            found[words[0]] = number
    return found


def _array(key: str, values: list[Any]) -> Any:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{key!r} has lists of different lengths: let batch_encode pad them") from error
    if array.dtype.hasobject:
        kinds = sorted({type(value).__name__ for value in values})
        raise TypeError(
            f"{key!r} has {', '.join(kinds)}, of which there is no array: let batch_encode make numbers of it"
        )
    return array
