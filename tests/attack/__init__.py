"""Attacks: bad inputs by the thousand, and kills, outside of pytest and bounded by time."""
