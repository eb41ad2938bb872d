"""Every table of a base as plain rows, in the shapes the command line prints. Reads files, computes nothing new."""
