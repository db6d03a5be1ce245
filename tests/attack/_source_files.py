"""Small valid files of every source format, to be damaged."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import gzip
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from streamsel.stream import iter_bed, iter_csv
from streamsel.stream.formats import FORMATS

# Text with one variable per line.
BY_VARIABLE = functools.partial(iter_csv, orientation="variables")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamsel.stream import ColumnStream

N_ROWS = 24


class Sample(NamedTuple):
    """A valid file."""

    label: str
    data: bytes


def _iter_plink(path: Path) -> ColumnStream:
    """Open genotypes with one damaged file; the other two files are valid."""
    for suffix, data in _plink().items():
        if suffix != path.suffix:
            path.with_suffix(suffix).write_bytes(data)
    return iter_bed(path.with_suffix(".bed"))


OPENERS: dict[str, tuple[str, Callable[[Any], ColumnStream]]] = {
    **{kind: (FORMATS[kind].suffixes[0], FORMATS[kind].open) for kind in ("ipc", "parquet", "npy")},
    "vcf": (".vcf", FORMATS["vcf"].open),
    "vcf.gz": (".vcf.gz", FORMATS["vcf"].open),
    "csv": (".csv", iter_csv),
    "lines": (".txt", BY_VARIABLE),
    "lines.gz": (".tsv.gz", BY_VARIABLE),
    "bed": (".bed", _iter_plink),
    "bim": (".bim", _iter_plink),
    "fam": (".fam", _iter_plink),
}
"""Of every format: the suffix of its files, and what reads them."""

# Meaningful words of each format, separated by spaces where they contain none.
TOKENS = {
    "npy": [
        *rb"-1 '<f8' '|O' '<U0' 'V0' '<M8[ns]' '>f8' [('a','<f8')] True 10**9 0 L , \x00".split(),
        *(b"(" * 200, b"9" * 20, b"9" * 5000, b"\n"),
    ],
    "csv": [
        *b'" "" , ; NA nan(1) _ 1e999 - inf 0x1p3 1,5 # \' e \x00 \xff \x1c \x1f\x8b'.split(),
        *"\u2028 \u0661 \x85 \ufeff".encode().split(b" "),
        *(b"9" * 400, b"\r", b"\r\n", b"\n", b"\t", b" "),
    ],
}
TOKENS["vcf"] = [*TOKENS["csv"], *b"0|1 1/1 ./. . GT :GT: 10 / | #CHROM ## - +".split()]
TOKENS["lines"] = TOKENS["bim"] = TOKENS["fam"] = TOKENS["csv"]


def samples(kind: str) -> list[Sample]:
    """Return valid files of a format."""
    makers = {
        "ipc": _ipc,
        "parquet": _parquet,
        "npy": _npy,
        "vcf": _vcf,
        "csv": _csv,
        "lines": _lines,
    }
    if kind.endswith(".gz"):
        whole = makers[kind.removesuffix(".gz")]()
        return [Sample(f"{s.label}, gz", gzip.compress(s.data, mtime=0)) for s in whole]
    if f".{kind}" in _plink():
        return [Sample(f"of PLINK, {kind}", _plink()[f".{kind}"])]
    return list(makers[kind]())


def _ipc() -> Iterator[Sample]:
    tables = dict(_tables()) | dict(_tables_of_ipc())
    for label, table in tables.items():
        yield Sample(label, _ipc_bytes(table))
    for codec in ("lz4", "zstd"):
        for label in ("float64", "numbers with nulls", "text"):
            yield Sample(f"{label}, {codec}", _ipc_bytes(tables[label], compression=codec))
    for label in ("float64", "numbers with nulls", "text", "dictionary"):
        yield Sample(f"{label}, batches", _ipc_bytes(tables[label], batch=7))
    yield Sample("batches, lz4", _ipc_bytes(tables["numbers"], batch=9, compression="lz4"))
    for codec in ("uncompressed", "lz4", "zstd"):
        file = io.BytesIO()
        pl.from_arrow(tables["numbers with nulls"]).write_ipc(file, compression=codec)
        yield Sample(f"of polars, {codec}", file.getvalue())


def _ipc_bytes(table: pa.Table, batch: int | None = None, compression: str | None = None) -> bytes:
    file = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=batch)
    return file.getvalue()


def _parquet() -> Iterator[Sample]:
    tables = dict(_tables())
    for label, table in tables.items():
        yield Sample(label, _parquet_bytes(table))
        yield Sample(f"{label}, plain", _parquet_bytes(table, compression="none"))
    for codec in ("zstd", "gzip", "lz4", "brotli"):
        yield Sample(f"with nulls, {codec}", _parquet_bytes(tables["numbers with nulls"], codec))
    more = {
        "row groups": {"row_group_size": 7},
        "pages of version 2": {"data_page_version": "2.0", "data_page_size": 64},
        "checksums": {"write_page_checksum": True},
        "no dictionary": {"use_dictionary": False},
        "small pages": {"data_page_size": 32, "write_batch_size": 4, "use_dictionary": False},
        "streams split": {"use_dictionary": False, "use_byte_stream_split": True},
    }
    for label, options in more.items():
        for of in ("float64",) if "split" in label else ("numbers with nulls", "text"):
            yield Sample(f"{of}, {label}", _parquet_bytes(tables[of], "snappy", **options))
    for encoding, of in (("DELTA_BINARY_PACKED", "integers"), ("DELTA_BYTE_ARRAY", "text")):
        options = {"use_dictionary": False, "column_encoding": {"a": encoding}}
        yield Sample(encoding.lower(), _parquet_bytes(tables[of], "none", **options))
    file = io.BytesIO()
    pl.from_arrow(tables["numbers with nulls"]).write_parquet(file)
    yield Sample("of polars", file.getvalue())


def _parquet_bytes(table: pa.Table, compression: str = "snappy", **options: Any) -> bytes:
    file = io.BytesIO()
    pa.parquet.write_table(table, file, compression=compression, **options)
    return file.getvalue()


def _tables() -> Iterator[tuple[str, pa.Table]]:
    """Yield tables of every type that both Arrow files and Parquet support."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, N_ROWS))
    holes = rng.random((6, N_ROWS)) < 0.2
    whole = np.round(10 * x)
    words = [
        None if hole else f"word {int(v) % 5}" for v, hole in zip(x[0] * 9, holes[0], strict=True)
    ]
    moments = [
        dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=h) for h in range(N_ROWS)
    ]
    yield "float64", pa.table({f"v{j}": x[j] for j in range(6)})
    yield "float32", pa.table({f"v{j}": x[j].astype(np.float32) for j in range(6)})
    yield "int8", pa.table({f"v{j}": whole[j].astype(np.int8) for j in range(6)})
    yield "integers", pa.table({"a": whole[0].astype(np.int64), "b": whole[1].astype(np.int16)})
    yield "booleans", pa.table({f"v{j}": x[j] > 0 for j in range(3)})
    yield (
        "numbers",
        pa.table({"a": x[0], "b": x[1].astype(np.float32), "c": whole[2].astype(np.int8)}),
    )
    yield (
        "numbers with nulls",
        pa.table(
            {
                "a": pa.array(x[0], mask=holes[0]),
                "b": pa.array(x[1].astype(np.float32), mask=holes[1]),
                "c": pa.array(whole[2].astype(np.int32), mask=holes[2]),
                "d": pa.array(whole[3].astype(np.uint8), mask=holes[3]),
                "e": pa.array(x[4] > 0, mask=holes[4]),
            }
        ),
    )
    yield "text", pa.table({"a": words, "b": pa.array(words[::-1], pa.large_string()), "c": x[0]})
    yield "dictionary", pa.table({"a": pa.array(words).dictionary_encode(), "b": x[0]})
    numbers = [decimal.Decimal(f"{v:.2f}") for v in x[0]]
    yield "decimals", pa.table({"a": pa.array(numbers, pa.decimal128(9, 2)), "b": x[1]})
    yield (
        "dates",
        pa.table(
            {
                "a": pa.array(moments, pa.timestamp("ms", tz="UTC")),
                "b": pa.array([m.date() for m in moments]),
                "c": pa.array([m.time() for m in moments]),
                "d": pa.array([m - moments[0] for m in moments], pa.duration("us")),
            }
        ),
    )
    lists = [None if v > 1 else list(map(float, range(int(3 * abs(v))))) for v in x[0]]
    yield (
        "nested",
        pa.table(
            {
                "a": lists,
                "b": [{"x": float(v), "y": word} for v, word in zip(x[1], words, strict=True)],
                "c": pa.array(x[:2].T.tolist(), pa.list_(pa.float64(), 2)),
                "d": pa.array(
                    [[("k", float(v))] for v in x[2]], pa.map_(pa.string(), pa.float64())
                ),
                "e": x[3],
            }
        ),
    )
    index = pa.schema([("a", pa.float64()), ("__index_level_0__", pa.string())])
    index = index.with_metadata(
        {"pandas": '{"index_columns": ["__index_level_0__"], "columns": []}'}
    )
    yield "with the index of pandas", pa.table([x[0], words], schema=index)


def _tables_of_ipc() -> Iterator[tuple[str, pa.Table]]:
    """Yield tables of types that Parquet does not support."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=N_ROWS)
    texts = [f"a text of more than twelve bytes {i}" for i in range(N_ROWS)]
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([9, N_ROWS], pa.int32()), pa.array([1.5, 2]))
    kinds = pa.array([i % 2 for i in range(N_ROWS)], pa.int8())
    union = pa.UnionArray.from_sparse(kinds, [pa.array(x), pa.array(texts)])
    offsets = pa.array([i // 2 for i in range(N_ROWS)], pa.int32())
    dense = pa.UnionArray.from_dense(kinds, offsets, [pa.array(x), pa.array(texts)])
    yield "float16 and null", pa.table({"a": x.astype(np.float16), "b": pa.nulls(N_ROWS), "c": x})
    yield "views", pa.table({"a": pa.array(texts, pa.string_view()), "b": x})
    yield "run ends", pa.table({"a": runs, "b": x})
    yield "unions", pa.table({"a": union, "b": dense, "c": x})
    yield (
        "large lists and bytes",
        pa.table(
            {
                "a": pa.array([[v] for v in x], pa.large_list(pa.float64())),
                "b": pa.array([t.encode() for t in texts], pa.large_binary()),
                "c": pa.array([t[:4].encode() for t in texts], pa.binary(4)),
                "d": pa.array([[v] for v in x], pa.list_view(pa.float64())),
            }
        ),
    )


def _npy() -> Iterator[Sample]:
    x = np.random.default_rng(0).normal(size=(N_ROWS, 5))
    for dtype in ("f8", "f4", "i1", ">i4", "?", "c16", "U3"):
        for order in "FC":
            yield Sample(
                f"{dtype} in {order} order", _npy_bytes(np.asarray(x.astype(dtype), order=order))
            )
    yield Sample("of format 3.0", _npy_bytes(x, (3, 0)))
    yield Sample("of format 2.0", _npy_bytes(x, (2, 0)))


def _npy_bytes(x: Any, version: tuple[int, int] = (1, 0)) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, x, version=version)
    return file.getvalue()


def _csv() -> Iterator[Sample]:
    x = np.random.default_rng(0).normal(size=(12, 4))
    rows = [[f"{v:.4g}" for v in row] for row in x]
    yield Sample("numbers", _text([["a", "b", "c", "d"], *rows], ","))
    gaps = [[*row[:2], "NA" if i % 3 else "", f"word {i % 2}"] for i, row in enumerate(rows)]
    yield Sample("gaps and text", _text([["a", "b", "c", "kind"], *gaps], "\t"))
    quoted = [[row[0], f'"{row[1]}"', f'"of ""{i},\n"'] for i, row in enumerate(rows)]
    yield Sample("quoted", _text([["a", '"b,c"', "d"], *quoted], ","))
    yield Sample("gz", gzip.compress(_text([["a", "b", "c", "d"], *rows], ","), mtime=0))


def _lines() -> Iterator[Sample]:
    x = np.random.default_rng(0).normal(size=(12, 5))
    rows = [[f"v{i}", *(f"{v:.4g}" for v in row)] for i, row in enumerate(x)]
    header = [["name", "s1", "s2", "s3", "s4", "s5"]]
    yield Sample("with header", _text(header + rows, "\t"))
    yield Sample("without header", _text(rows, ","))
    gaps = [[f'"{row[0]}, quoted"', *row[1:4], "NA", ""] for row in rows]
    yield Sample("gaps and quotes", _text(header + gaps, ","))


def _vcf() -> Iterator[Sample]:
    rng = np.random.default_rng(0)
    head = [
        "CHROM",
        "POS",
        "ID",
        "REF",
        "ALT",
        "QUAL",
        "FILTER",
        "INFO",
        "FORMAT",
        "s1",
        "s2",
        "s3",
        "s4",
        "s5",
    ]
    genotypes = np.array(["0|0", "0|1", "1/1", "./.", "1", "1/2/13"])
    for form, rest in (("GT", ""), ("GT:DP:PL", ":7:0,3,255"), ("DP:GT", "")):
        rows = []
        for j in range(70):
            drawn = genotypes[rng.choice(6, size=5, p=[0.4, 0.3, 0.2, 0.05, 0.03, 0.02])]
            cells = [f"9:{one}" if form == "DP:GT" else one + rest for one in drawn]
            name = f"rs{j}" if j % 9 else "."
            rows.append(["1", str(j // 2), name, "A", "G,T", ".", "PASS", "AC=3", form, *cells])
        table = _text([head, *rows], "\t")
        yield Sample(form, b"##fileformat=VCFv4.2\n##source=x\n#" + table)
        if form == "GT":
            yield Sample(
                "carriage returns", b"##fileformat=VCFv4.2\n#" + table.replace(b"\n", b"\r\n")
            )


def _plink() -> dict[str, bytes]:
    """Return the three PLINK files of 6 samples and 70 variants."""
    rng = np.random.default_rng(0)
    codes = rng.choice([0, 1, 2, 3], size=(70, 8), p=[0.3, 0.02, 0.4, 0.28]) << [0, 2, 4, 6] * 2
    packed = codes.reshape(70, 2, 4).sum(axis=2).astype(np.uint8).tobytes()
    bim = "".join(f"1\t{'.' if j % 9 else f'rs{j}'}\t0\t{j // 2}\tA\tG\n" for j in range(70))
    fam = "".join(f"F{i} s{i} 0 0 {i % 3} {i % 2 + 1}\n" for i in range(6))
    return {
        ".bed": b"\x6c\x1b\x01" + packed,
        ".bim": bim.encode(),
        ".fam": fam.encode(),
    }


def _text(rows: list[list[str]], mark: str) -> bytes:
    return "".join(mark.join(row) + "\n" for row in rows).encode()
