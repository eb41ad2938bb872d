"""Fetch what sources give and keep it with its provenance, one record per work."""
