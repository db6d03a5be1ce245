"""The learner contract: one model that learns from columns and from rows."""
