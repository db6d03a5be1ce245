"""Attacks: thousands of bad inputs, and killed processes, outside pytest and with a time limit."""
