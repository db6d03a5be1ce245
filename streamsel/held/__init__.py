"""Internal states of learners, filled by columns and by rows."""
