"""A knowledge base that re-checks the numbers in papers and blogs about LLM inference."""

__version__ = "0.1.0"
