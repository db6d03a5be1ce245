"""The state of a learner: what columns and rows fill, apart from any method."""
