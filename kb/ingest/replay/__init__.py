"""A local server that stands in for the network: arXiv's API, feeds and pages about the papers and posts of the demo.

Ids, titles, addresses and dates are facts; every summary is written for this repository in our own words.
``python -m kb.ingest.replay --port 0`` prints its address; ``KB_REPLAY=<address> kb ingest …`` then asks it instead of every
host: ``https://host/path`` becomes ``<address>/host/path``.
"""
