"""Every form, compressed or not, gives back the samples that were written, and as many as are counted."""

from __future__ import annotations

import datetime
import io
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from stoker.errors import ChunkError
from stoker.sources.files.columns import Columns
from stoker.sources.files.ragged import Nullable, Ragged
from stoker.sources.files.readers import count_samples, read_chunk
from stoker.sources.files.texts import Texts
from tests.files.forms import COMPRESSIONS, FORMS, expected, npy, plain, rows, tar


def written(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    return str(path)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [1, 5])
def test_what_was_written_is_read_and_counted(tmp_path, form, compression, count):
    samples = rows(count)
    path = written(tmp_path, f"a.{form}{compression}", COMPRESSIONS[compression](FORMS[form](samples)))
    assert plain(read_chunk(path)) == expected(form, samples)
    assert count_samples(path) == count


@pytest.mark.parametrize("form", FORMS)
def test_a_file_without_samples_has_none(tmp_path, form):
    path = written(tmp_path, f"a.{form}", FORMS[form]([]))
    assert len(read_chunk(path)) == count_samples(path) == 0


@pytest.mark.parametrize("compression", [key for key in COMPRESSIONS if key])
def test_compressed_streams_one_behind_the_other_are_one_file(tmp_path, compression):
    compress = COMPRESSIONS[compression]
    pieces = [compress(json.dumps(i).encode() + b"\n") for i in range(3)]
    padding = b"\0" * 8
    path = written(tmp_path, f"a.jsonl{compression}", pieces[0] + pieces[1] + padding + pieces[2] + padding)
    assert read_chunk(path) == [0, 1, 2]
    assert count_samples(path) == 3


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_file_of_many_blocks_is_read_whole(tmp_path, compression):
    numbers = np.random.default_rng(0).integers(0, 1 << 60, 100_000)
    data = b"\n".join(b"%d" % n for n in numbers)
    path = written(tmp_path, f"a.jsonl{compression}", COMPRESSIONS[compression](data))
    assert read_chunk(path) == numbers.tolist()
    assert count_samples(path) == len(numbers)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.lists(json_values, max_size=8), st.lists(st.sampled_from(["", " ", "\t\r"]), max_size=4), st.booleans())
def test_json_lines_with_blank_ones_between(tmp_path_factory, values, blanks, ends):
    lines = [json.dumps(value, ensure_ascii=False) for value in values]
    for place, blank in enumerate(blanks):
        lines.insert(place * 2, blank)
    path = written(tmp_path_factory.mktemp("lines"), "a.jsonl", ("\n".join(lines) + "\n" * ends).encode())
    assert read_chunk(path) == values
    assert count_samples(path) == len(values)


def test_json_lines_may_hold_nan_and_infinity_as_python_writes_them(tmp_path):
    values = [{"a": 1.5}, {"a": float("inf")}, {"a": -float("inf")}, {"a": float("nan"), "b": ["NaN"]}, 7]
    path = written(tmp_path, "a.jsonl", "".join(json.dumps(value) + "\n" for value in values).encode())
    assert repr(read_chunk(path)) == repr(values)
    assert repr(read_chunk(path, gather=True)) == repr(values)


@pytest.mark.parametrize("line", [b'{"a": nan}', b'{"a": Nan, "b": 1}', b'["NaN", oops]', b"NaN NaN", b'{"a": NaN'])
def test_other_words_that_json_does_not_have_are_errors_that_name_the_line(tmp_path, line):
    path = written(tmp_path, "a.jsonl", b"1\n" + line + b"\n")
    with pytest.raises(ChunkError, match=r"line 2, byte 2: DecodeError: JSON is malformed"):
        read_chunk(path)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")), max_size=8), st.booleans())
def test_text_lines_are_split_at_newlines_only(tmp_path_factory, lines, windows):
    end = "\r\n" if windows else "\n"
    path = written(tmp_path_factory.mktemp("text"), "a.txt", "".join(line + end for line in lines).encode())
    assert read_chunk(path) == lines
    assert count_samples(path) == len(lines)


def test_the_last_line_needs_no_end(tmp_path):
    path = written(tmp_path, "a.txt", b"one\n\ntwo")
    assert read_chunk(path) == ["one", "", "two"]
    assert count_samples(path) == 3


values = st.none() | st.integers(-(2**31), 2**31)
tables = st.integers(0, 6).flatmap(
    lambda n: st.fixed_dictionaries(
        {
            "numbers": st.lists(values, min_size=n, max_size=n),
            "lists": st.lists(st.lists(values, max_size=2), min_size=n, max_size=n),
            "words": st.lists(st.none() | st.text(st.characters(codec="utf-8")), min_size=n, max_size=n),
        }
    )
)


@given(tables, st.sampled_from(["parquet", "arrow", "ipc"]))
def test_any_table_comes_back(tmp_path_factory, columns, form):
    types = {"numbers": pa.int64(), "lists": pa.list_(pa.int64()), "words": pa.string()}
    table = pa.table(columns, pa.schema(types))
    path = tmp_path_factory.mktemp("tables") / f"a.{form}"
    if form == "parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=2)
    else:
        new = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
        with new(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    assert plain(read_chunk(str(path))) == table.to_pylist()
    assert count_samples(str(path)) == table.num_rows


def test_the_types_of_a_table_decide_what_becomes_of_its_columns(tmp_path):
    day = datetime.datetime(2024, 5, 1)
    table = pa.table(
        {
            "int": pa.array([1, 2], pa.int16()),
            "bool": [True, False],
            "time": pa.array([day, day], pa.timestamp("us")),
            "fixed": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
            "equal": [[1, 2], [3, 4]],
            "ragged": [[1], [2, 3]],
            "null": [1, None],
            "inner null": [[1, None], [2, 3]],
            "word": pa.array(["a", "b"]).dictionary_encode(),
            "bytes": [b"a", b"b"],
            "struct": [{"a": 1}, {"a": 2}],
        }
    )
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(table, path)
    read = read_chunk(str(path))
    arrays = {key: (c.dtype.str, c.shape) for key, c in read.columns.items() if isinstance(c, np.ndarray)}
    assert arrays == {
        "int": ("<i2", (2,)),
        "bool": ("|b1", (2,)),
        "time": ("<M8[us]", (2,)),
        "fixed": ("<f4", (2, 2)),
    }
    kinds = {key: type(column) for key, column in read.columns.items() if key not in arrays}
    assert kinds == {
        "equal": Ragged,
        "ragged": Ragged,
        "null": Nullable,
        "inner null": Ragged,
        "word": Texts,
        "bytes": list,
        "struct": Columns,
    }
    assert plain(read) == table.to_pylist()


def test_a_slice_of_an_arrow_table_is_that_slice(tmp_path):
    table = pa.table(
        {"equal": [[i, i] for i in range(6)], "fixed": pa.array([[i] for i in range(6)], pa.list_(pa.int8(), 1))}
    )
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), table.schema) as writer:
        writer.write_table(table.slice(2, 3))
    assert plain(read_chunk(str(tmp_path / "a.arrow"))) == table.slice(2, 3).to_pylist()


def test_rows_of_an_array_of_many_dimensions(tmp_path):
    array = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    path = written(tmp_path, "a.npy", npy(array))
    np.testing.assert_array_equal(np.stack(read_chunk(path).rows()), array)
    assert count_samples(path) == 4


def test_an_array_whose_header_numpy_writes_in_version_3(tmp_path):
    path = written(tmp_path, "a.npy", b"")
    with pytest.warns(UserWarning, match="NumPy"):
        np.save(path, np.zeros(3, [("ж", np.int8)]))
    assert len(read_chunk(path)) == count_samples(path) == 3


@pytest.mark.parametrize("array", [np.array([{}, None], object), np.float32(3)], ids=["pickled", "no rows"])
@pytest.mark.parametrize("what", [read_chunk, count_samples])
def test_arrays_that_are_no_samples(tmp_path, array, what):
    path = str(tmp_path / "a.npy")
    np.save(path, array, allow_pickle=True)
    with pytest.raises(ChunkError, match=r"a\.npy"):
        what(path)


@pytest.mark.parametrize("what", [read_chunk, count_samples])
def test_arrays_of_different_lengths(tmp_path, what):
    np.savez(tmp_path / "a.npz", x=np.zeros(3), y=np.zeros((2, 2)))
    with pytest.raises(ChunkError, match=r"'x': 3, 'y': 2"):
        what(str(tmp_path / "a.npz"))


def test_columns_of_csv_keep_their_quoted_newlines(tmp_path):
    path = written(tmp_path, "a.csv", b'n,word\n1,"a\nb"\n2.5,c\n')
    assert plain(read_chunk(path)) == [{"n": 1.0, "word": "a\nb"}, {"n": 2.5, "word": "c"}]


def test_two_columns_of_one_name(tmp_path):
    with pytest.raises(ChunkError, match="same name: 'n'"):
        read_chunk(written(tmp_path, "a.csv", b"n,n\n1,2\n"))


def image(form):
    out = io.BytesIO()
    Image.fromarray(np.full((2, 3, 3), 200, np.uint8)).save(out, form)
    return out.getvalue()


def test_the_files_of_a_tar_are_decoded_by_their_ending(tmp_path):
    members = [
        ("./", b""),
        ("README", b"no sample"),
        ("x/._a.png", b"a Mac was here"),
        ("x/a.png", image("PNG")),
        ("x/a.JPG", image("JPEG")),
        ("x/a.npy", npy(np.arange(3))),
        ("x/a.cls", b" 7\n"),
        ("x/b.meta.json", b'{"k": [1]}'),
        ("x/b.txt", "ö".encode()),
        ("x/b.bin", b"\0\1"),
    ]
    path = written(tmp_path, "a.tar", tar(members[1:]))
    first, second = read_chunk(path)
    assert first["__key__"] == "x/a"
    assert first["png"].shape == first["jpg"].shape == (2, 3, 3)
    assert first["png"].dtype == np.uint8
    assert first["npy"].tolist() == [0, 1, 2]
    assert first["cls"] == 7
    assert second == {"__key__": "x/b", "meta.json": {"k": [1]}, "txt": "ö", "bin": b"\0\1"}
    assert count_samples(path) == 2


@pytest.mark.parametrize("what", [read_chunk, count_samples])
@pytest.mark.parametrize(
    ("names", "told"),
    [(["a.x", "b.x", "a.y"], "do not stand together"), (["a.x", "a.X"], r"two files that end in \.x")],
)
def test_samples_of_a_tar_that_are_mixed_up(tmp_path, what, names, told):
    path = written(tmp_path, "a.tar", tar([(name, b"1") for name in names]))
    with pytest.raises(ChunkError, match=f"a.tar at member '{names[-1]}', byte .*{told}"):
        what(path)


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b/a", "b.c/d"]), st.sampled_from(["x", "y.x", "TXT"])), unique=True),
    st.sampled_from(["", ".gz", ".zst"]),
)
def test_a_tar_is_grouped_as_a_naive_model_does(tmp_path_factory, members, compression):
    members.sort(key=lambda member: member[0])
    data = tar([(f"{key}.{kind}", key.encode()) for key, kind in members])
    path = written(tmp_path_factory.mktemp("tars"), f"a.tar{compression}", COMPRESSIONS[compression](data))
    model = {}
    for key, kind in members:
        value = key if kind == "TXT" else key.encode()
        model.setdefault(key, {"__key__": key})[kind.lower()] = value
    assert read_chunk(path) == list(model.values())
    assert count_samples(path) == len(model)


def test_an_unknown_ending_says_what_to_do():
    for what in (read_chunk, count_samples):
        with pytest.raises(ValueError, match=r"x/a\.dat\.gz: .*\.jsonl.*read=function"):
            what("x/a.dat.gz")


@pytest.mark.parametrize("form", [*FORMS, "jsonl.gz", "tar.zst"])
def test_a_file_that_is_not_there(tmp_path, form):
    for what in (read_chunk, count_samples):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            what(str(tmp_path / f"nowhere.{form}"))


def broken(path):
    yield 1
    yield 2
    raise RuntimeError("the third is bad")


READS = {
    "generator": (lambda path: (c for c in "ab"), ["a", "b"]),
    "list": (lambda path: [1, 2], [1, 2]),
    "path": (lambda path: [path], ["any.dat"]),
    "array": (lambda path: np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
    "dict": (
        lambda path: {"x": [1, 2], "y": np.arange(2), "z": (3, 4)},
        [{"x": 1, "y": 0, "z": 3}, {"x": 2, "y": 1, "z": 4}],
    ),
    "Columns": (lambda path: Columns({"x": ["a"]}), [{"x": "a"}]),
    "nothing": (lambda path: [], []),
}


@pytest.mark.parametrize("name", READS)
def test_a_function_of_the_user(name):
    read, samples = READS[name]
    assert plain(read_chunk("any.dat", read)) == samples
    assert count_samples("any.dat", read) == len(samples)


@pytest.mark.parametrize(
    ("read", "told"),
    [
        (broken, "any.dat at sample 2: RuntimeError: the third is bad"),
        (lambda path: {"x": [1, 2], "y": [1]}, r"'x': 2, 'y': 1"),
        (lambda path: {"x": 3}, "column 'x' .* of type int"),
        (lambda path: "text", "of type str: let it yield"),
        (lambda path: None, "of type NoneType: let it yield"),
        (lambda path: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_function_of_the_user_that_fails(read, told):
    with pytest.raises(ChunkError, match=told) as caught:
        read_chunk("any.dat", read)
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("zstandard", "a.jsonl.zst"),
        ("pyarrow", "a.parquet"),
        ("PIL.Image", "a.tar"),
        ("fsspec.core", "memory://a.jsonl"),
    ],
)
def test_a_library_that_is_not_installed_is_named(tmp_path, monkeypatch, module, name):
    (tmp_path / "a.jsonl.zst").write_bytes(COMPRESSIONS[".zst"](b"1\n"))
    (tmp_path / "a.parquet").write_bytes(b"")
    (tmp_path / "a.tar").write_bytes(tar([("a.png", image("PNG"))]))
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"needs {module.partition('.')[0]}: pip install 'stoker\[files\]'"):
        read_chunk(name if "://" in name else str(tmp_path / name))


def test_importing_the_readers_imports_nothing_heavy():
    code = (
        "import sys, stoker, stoker.sources.files.readers, stoker.sources.files.listing\n"
        "print([m for m in ('fsspec', 'pyarrow', 'zstandard', 'PIL', 'pandas') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
