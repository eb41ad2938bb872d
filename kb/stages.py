"""Moving drafts between stages: a folder is a state, review cannot be skipped."""
