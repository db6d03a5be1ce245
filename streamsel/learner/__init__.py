"""Define the base classes of learners, on columns and on rows."""
