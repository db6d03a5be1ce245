"""The contract of two axes: what every learner does, whatever its method."""
