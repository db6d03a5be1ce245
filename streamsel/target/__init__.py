"""What is to be explained: as columns of numbers, as rows deliver it, and the space it spans."""
