"""Whom we are measured against, each written the way its users would."""
