"""The one writer to the remote."""
