"""Drivers of real serving engines."""
