"""``python -m kb.ingest.replay [--port N]``: prints the address on the first line of stdout and serves until it is ended."""

from __future__ import annotations

import argparse
import contextlib
import sys

from kb.ingest.replay.server import serve


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m kb.ingest.replay", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    server = serve(parser.parse_args().port)
    sys.stdout.write(f"http://127.0.0.1:{server.server_address[1]}\n")
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
