"""Gram matrices over all columns, exact or of low rank."""
