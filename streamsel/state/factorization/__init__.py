"""Online matrix factorization of columns and of rows."""
