"""Read-only doors for agents."""
