"""What a learner keeps of the variables that went by: few states, that columns and rows fill."""
