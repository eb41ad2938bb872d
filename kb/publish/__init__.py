"""Write verdicts and figures into pages that people own."""
