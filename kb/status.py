"""What `kb status` says of a base: counts, what is held, what is stale, who writes."""
