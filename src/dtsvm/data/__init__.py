"""Rows in: files and bundled digits to arrays, and which node of the network holds which row."""

import typing

from dtsvm import loading

if typing.TYPE_CHECKING:
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

__getattr__, __dir__ = loading.on_demand(
    __name__,
    {
        "deal": "dtsvm.data.dealing",
        "Digits": "dtsvm.data.digits",
        "load_mnist": "dtsvm.data.digits",
        "DigitDraw": "dtsvm.data.features",
        "DigitFeatures": "dtsvm.data.features",
        "Kind": "dtsvm.data.kinds",
        "Records": "dtsvm.data.records",
        "frame_records": "dtsvm.data.records",
        "read_records": "dtsvm.data.records",
        "Rows": "dtsvm.data.rows",
        "read_rows": "dtsvm.data.rows",
        "ColumnSchema": "dtsvm.data.schema",
        "Schema": "dtsvm.data.schema",
        "agree_schemas": "dtsvm.data.schema",
    },
)
