"""Rows in: files and bundled digits to arrays, and which node of the network holds which row."""

from dtsvm.data.dealing import deal
from dtsvm.data.digits import Digits, load_mnist
from dtsvm.data.features import DigitDraw, DigitFeatures
from dtsvm.data.rows import Rows, read_rows

__all__ = ["DigitDraw", "DigitFeatures", "Digits", "Rows", "deal", "load_mnist", "read_rows"]
