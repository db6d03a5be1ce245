"""State of a learner: quantities accumulated from columns and rows, whatever the method."""
