"""Triton kernels, each under its plain-torch reference, one file each."""
