"""Simulators: paged allocator, radix tree, serving event loop."""
