"""Columns and names as they enter the package."""
