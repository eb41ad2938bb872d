"""A server on a real socket that answers as it is told: well, or as badly as servers do."""

import contextlib
import json
import socket
import struct
import threading
import time

TEXT = "text/event-stream"
METRICS = """# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:cache_config_info{{block_size="{page}",enable_prefix_caching="True",num_gpu_blocks="4097",\
prefix_caching_hash_algo="sha256",gpu_memory_utilization="0.92"}} 1.0
vllm:prefix_cache_queries_total{{engine="0",model_name="m"}} {sent}
vllm:prefix_cache_hits_total{{engine="0",model_name="m"}} {hits}
vllm:num_preemptions_total{{engine="0",model_name="m"}} 0.0
"""


def event(value):
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def token(text):
    return event({"choices": [{"index": 0, "text": text, "finish_reason": None}]})


def usage(prompt, output, **more):
    counts = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    return event({"choices": [], "usage": {**counts, **more}})


END = b"data: [DONE]\n\n"


class Server:
    """Answers each completion with ``behave(self, connection, request, number)``; the rest as an engine does."""

    def __init__(self, behave):
        self.behave = behave
        self.metrics = None
        """How it answers at ``/metrics``; None: as a vLLM does."""
        self.page = 32
        self.seen = set()
        """Every beginning of a prompt that fills whole pages."""
        self.hit_tokens = 0
        self.hit_factor = 1.0
        """Other than 1: an engine that counts wrong."""
        self.models = b'{"data": [{"id": "m"}]}'
        self.asked = 0
        self.open = 0
        self.most_open = 0
        self.arrived = []
        self.sent_tokens = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self):
        self._closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def pause(self, seconds):
        """Sleep that ends with the server."""
        self._closing.wait(seconds)

    @property
    def closing(self):
        return self._closing.is_set()

    def _accept(self):
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with contextlib.suppress(OSError), connection:
            head, _, body = self._request(connection).partition(b"\r\n\r\n")
            path = head.split(b" ")[1].decode()
            if path == "/v1/completions":
                request = json.loads(body)
                with self._lock:
                    number, self.asked = self.asked, self.asked + 1
                    self.open += 1
                    self.most_open = max(self.most_open, self.open)
                    self.arrived.append(time.perf_counter())
                    self._remember(tuple(request["prompt"]))
                try:
                    self.behave(self, connection, request, number)
                finally:
                    with self._lock:
                        self.open -= 1
            elif path == "/metrics" and self.metrics is not None:
                self.metrics(self, connection, {}, 0)
            elif path == "/metrics":
                hits = self.hit_tokens * self.hit_factor
                text = METRICS.format(page=self.page, sent=self.sent_tokens, hits=hits)
                whole(connection, text.encode(), "text/plain")
            else:
                whole(connection, self.models)

    def _remember(self, prompt):
        """Count a hit for the longest beginning seen, the last token left out, and remember all of them."""
        self.sent_tokens += len(prompt)
        starts = [prompt[:end] for end in range(self.page, len(prompt) + 1, self.page)]
        self.hit_tokens += max((len(s) for s in starts if s in self.seen and len(s) < len(prompt)), default=0)
        self.seen.update(starts)

    def _request(self, connection):
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        size = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
        while len(body) < size:
            body += connection.recv(65536)
        return head + b"\r\n\r\n" + body


def whole(connection, body, kind="application/json", status="200 OK"):
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    connection.sendall(head.encode() + body)


def begin(connection, kind=TEXT):
    connection.sendall(
        f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n".encode()
    )


def send(connection, data):
    connection.sendall(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def finish(connection):
    connection.sendall(b"0\r\n\r\n")


# Behaviours


def good(server, connection, request, number, *, first_s=0.0, gap_s=0.0):
    begin(connection)
    server.pause(first_s)
    for at in range(request["max_tokens"]):
        if at:
            server.pause(gap_s)
        send(connection, token("a"))
    send(connection, usage(len(request["prompt"]), request["max_tokens"]) + END)
    finish(connection)


def silent(server, connection, request, number):
    server.pause(60)


def stalls(server, connection, request, number):
    begin(connection)
    send(connection, token("a"))
    server.pause(60)


def trickles(server, connection, request, number):
    """A byte now and then, so that no read ever waits long."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not server.closing:
        connection.sendall(b":")
        server.pause(0.02)


def trickles_headers(server, connection, request, number):
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while not server.closing:
        connection.sendall(b"x")
        server.pause(0.02)


def resets(server, connection, request, number):
    begin(connection)
    send(connection, token("a"))
    server.pause(0.02)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def resets_at_once(server, connection, request, number):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def ends_early(server, connection, request, number):
    begin(connection)
    send(connection, token("a"))
    finish(connection)


def answering(status, body=b'{"error": "no"}'):
    return lambda server, connection, request, number: whole(connection, body, status=status)


def streaming(*pieces):
    def behave(server, connection, request, number):
        begin(connection)
        for piece in pieces:
            send(connection, piece)
        finish(connection)

    return behave


def flood(server, connection, request, number):
    """Events without end."""
    begin(connection)
    while not server.closing:
        send(connection, event({"choices": [], "padding": "x" * 4000}))


def one_long_line(server, connection, request, number):
    begin(connection)
    while not server.closing:
        send(connection, b"data: " + b"x" * 65536)
