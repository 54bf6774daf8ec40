"""PyLoader's ready-made parts: JSON lines, a vocabulary, numpy arrays."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker import ChunkError
from stoker.compat.pyloader import DataLoader, JsonLineDataReader, NumpyDataCollator, TextDataset


@pytest.fixture
def vocabulary(tmp_path):
    path = tmp_path / "vocabulary"
    path.write_text("[PAD]\nthe\n[UNK]\ncat\nsat\n")
    return path


# JsonLineDataReader


def test_lines_become_lists(tmp_path):
    path = tmp_path / "lines"
    path.write_text('{"text": "ä b", "label": 1}\n\n{"label": 0, "text": ""}', encoding="utf-8")
    assert JsonLineDataReader().read_file(str(path)) == ({"text": ["ä b", ""], "label": [1, 0]}, 2)


def test_an_empty_file_has_no_samples(tmp_path):
    path = tmp_path / "lines"
    path.touch()
    assert JsonLineDataReader().read_file(str(path)) == ({}, 0)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"text": 1', "is not JSON: "),
        (b'{"text": "\xff"}', "is not JSON: "),
        (b"[1]", "holds list: it must hold an object"),
        (b'{"text": 1, "more": 2}', "its keys are ['more', 'text'], those before it had ['text']"),
        (b"{}", "its keys are [], those before it had ['text']"),
    ],
)
@pytest.mark.parametrize("queue", [1, 2])
def test_a_line_that_is_something_else_is_named(tmp_path, vocabulary, line, words, queue):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "lines").write_bytes(b'{"text": "the cat"}\n\n' + line + b"\n")
    dataset = TextDataset(vocabulary)
    with DataLoader(JsonLineDataReader(), dataset, NumpyDataCollator(), folder, max_queue_size=queue) as loader:
        with pytest.raises(ChunkError, match=re.escape(f"{folder}/lines, line 3") + ".*" + re.escape(words)):
            list(loader)


# TextDataset


def test_words_become_ids_padded_to_the_longest(vocabulary):
    dataset = TextDataset(vocabulary)
    batch = {"text": ["the cat", "the dog sat  down\n", ""], "label": [1, 2, 3]}
    assert dataset.batch_encode(batch) == {"text": [[1, 3, 0, 0], [1, 2, 4, 2], [0, 0, 0, 0]], "label": [1, 2, 3]}
    assert (dataset.vocab_size, dataset.pad_id, dataset.unk_id) == (5, 0, 2)


def test_longer_texts_are_cut(vocabulary):
    dataset = TextDataset(vocabulary, max_seq_len=2)
    assert dataset.batch_encode({"text": ["sat sat sat", "the"]}) == {"text": [[4, 4], [1, 0]]}


def test_words_beyond_the_size_of_the_vocabulary_are_unknown(vocabulary):
    dataset = TextDataset(vocabulary, max_vocab_size=4)
    assert dataset.vocab_size == 4
    assert dataset.batch_encode({"text": ["the cat sat"]}) == {"text": [[1, 3, 2]]}


def test_several_keys_may_be_text(vocabulary):
    dataset = TextDataset(vocabulary, ["a", "b"])
    batch = {"a": ["the"], "b": ["cat sat"], "c": [0.5]}
    assert dataset.batch_encode(batch) == {"a": [[1]], "b": [[3, 4]], "c": [0.5]}


def test_pad_and_unknown_come_first_where_the_file_lacks_them(tmp_path):
    path = tmp_path / "vocabulary"
    path.write_text("a\n<u>\n")
    dataset = TextDataset(path)
    assert dataset.batch_encode({"text": ["a <u>", "b"]}) == {"text": [[2, 3], [1, 0]]}
    dataset = TextDataset(path, unk_token="<u>")
    assert dataset.batch_encode({"text": ["a b c", "a"]}) == {"text": [[1, 2, 2], [1, 0, 0]]}


@given(st.lists(st.text("ab \n"), max_size=5), st.integers(1, 4))
def test_every_batch_of_texts_is_a_rectangle(texts, longest):
    dataset = TextDataset.__new__(TextDataset)
    dataset.text_keys, dataset.max_seq_len, dataset._ids = ("text",), longest, {"a": 2}
    dataset.pad_id, dataset.unk_id = 0, 1
    ids = dataset.batch_encode({"text": texts})["text"]
    width = min(longest, max((len(text.split()) for text in texts), default=0))
    assert [len(row) for row in ids] == [width] * len(texts)
    assert [[i for i in row if i] for row in ids] == [
        [2 if word == "a" else 1 for word in text.split()[:width]] for text in texts
    ]


@pytest.mark.parametrize("name", ["max_seq_len", "max_vocab_size"])
def test_counts_are_whole_numbers(vocabulary, name):
    for wrong, kind in ((0, ValueError), (2.5, TypeError), (True, TypeError)):
        with pytest.raises(kind, match=f"{name}={wrong!r}: pass a whole number of 1 or more"):
            TextDataset(vocabulary, **{name: wrong})


@pytest.mark.parametrize(
    ("content", "options", "kind", "words"),
    [
        (None, {}, FileNotFoundError, "vocab_file=.*there is no such file"),
        ("a\n\nb\n", {}, ValueError, "line 2 has 0 words: put one token on each line"),
        ("a 17\n", {}, ValueError, "line 1 has 2 words"),
        ("a\nb\na\n", {}, ValueError, "'a' is in lines 1 and 3"),
        ("a\n", {"max_vocab_size": 1}, ValueError, r"max_vocab_size=1 leaves out .*: pass 2 or more"),
        ("a\nb\n[PAD]\n", {"max_vocab_size": 3}, ValueError, r"leaves out pad_token='\[PAD\]' .*: pass 4 or more"),
        ("a\n", {"text_keys": "words"}, TypeError, r"text_keys='words': pass a list of keys, as in \['words'\]"),
        ("a\n", {"text_keys": None}, TypeError, r"text_keys=None: pass a list of keys, as in \['text'\]"),
    ],
)
def test_what_is_wrong_is_said_by_the_constructor(tmp_path, content, options, kind, words):
    path = tmp_path / "vocabulary"
    if content is not None:
        path.write_text(content)
    with pytest.raises(kind, match=words):
        TextDataset(path, **options)


def test_text_must_be_there_and_text(vocabulary):
    with pytest.raises(KeyError, match=r"text_keys \['text'\] are not among the keys that were read, \['words'\]"):
        TextDataset(vocabulary).batch_encode({"words": ["a"]})
    with pytest.raises(TypeError, match="'text' is to be text, but a sample has 3: leave the key out"):
        TextDataset(vocabulary).batch_encode({"text": ["a", 3]})


# NumpyDataCollator


def test_lists_become_arrays():
    batch = NumpyDataCollator().collate_batch({"ids": [[1, 2], [3, 4]], "score": [0.5, 1], "flag": [True, False]})
    assert {key: (array.dtype.name, array.tolist()) for key, array in batch.items()} == {
        "ids": ("int64", [[1, 2], [3, 4]]),
        "score": ("float64", [0.5, 1.0]),
        "flag": ("bool", [True, False]),
    }


def test_what_is_no_array_is_named():
    with pytest.raises(ValueError, match="'ids' has lists of different lengths: let batch_encode pad them"):
        NumpyDataCollator().collate_batch({"ids": [[1], [1, 2]]})
    with pytest.raises(TypeError, match="'ids' has NoneType, int, of which there is no array"):
        NumpyDataCollator().collate_batch({"ids": [1, None]})


@pytest.mark.parametrize("queue", [1, 4])
def test_all_of_them_together(tmp_path, vocabulary, queue):
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(5):
        lines = [{"text": "the cat " * n, "label": n} for n in range(number, number + 3)]
        (folder / f"{number}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    dataset = TextDataset(vocabulary, max_seq_len=6)
    reader = JsonLineDataReader(2, shuffle=True)
    options = {"num_epoch": 2, "max_queue_size": queue, "shuffle": True}
    with DataLoader(reader, dataset, NumpyDataCollator(), folder, **options) as loader:
        labels = []
        for batch in loader:
            assert ((batch["text"] != dataset.pad_id).sum(1) == np.minimum(2 * batch["label"], 6)).all()
            labels += batch["label"].tolist()
    assert sorted(labels) == sorted(2 * [n for number in range(5) for n in range(number, number + 3)])
