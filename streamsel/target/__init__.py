"""The target: from columns or from rows, and the space that it spans."""
