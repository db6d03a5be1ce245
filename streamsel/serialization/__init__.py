"""Model files: archive, JSON values, schema checks and atomic writes."""
