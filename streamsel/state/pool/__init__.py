"""Bounded pools of columns with their moments or observations."""
