"""Rows in: files and bundled digits to arrays, and which node of the network holds which row."""

from dtsvm.data.dealing import deal
from dtsvm.data.digits import Digits, load_mnist
from dtsvm.data.features import DigitDraw, DigitFeatures
from dtsvm.data.kinds import Kind
from dtsvm.data.records import Records, frame_records, read_records
from dtsvm.data.rows import Rows, read_rows
from dtsvm.data.schema import ColumnSchema, Schema, agree_schemas

__all__ = [
    "ColumnSchema",
    "DigitDraw",
    "DigitFeatures",
    "Digits",
    "Kind",
    "Records",
    "Rows",
    "Schema",
    "agree_schemas",
    "deal",
    "frame_records",
    "load_mnist",
    "read_records",
    "read_rows",
]
