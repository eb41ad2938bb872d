"""What two parts of vLLM cost the host: hashing pages of a prompt, and handing one image to all workers."""

from __future__ import annotations

import hashlib
import mmap
import pickle
import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from kb.errors import WrongResult
from kb.repro.harness.timing import Candidate

PAGE, VOCABULARY = 16, 128_256


def hashed(tokens: list[int]) -> list[bytes]:
    """Chained hash of each full page, as vLLM's documented default makes it: SHA-256 over the pickled (parent, tokens, extra)."""
    parent, made = b"first page", []
    for at in range(0, len(tokens) - PAGE + 1, PAGE):
        page = (parent, tuple(tokens[at : at + PAGE]), None)
        parent = hashlib.sha256(pickle.dumps(page, protocol=pickle.HIGHEST_PROTOCOL)).digest()
        made.append(parent)
    return made


def hash_pages(inputs: Mapping[str, float]) -> dict[str, Candidate]:
    """Hash every page of a prompt.

    Args:
        inputs: ``tokens`` of the prompt.
    """
    count = int(inputs["tokens"])

    def prepare(rng: np.random.Generator) -> list[int]:
        tokens: list[int] = rng.integers(VOCABULARY, size=count).tolist()
        return tokens

    def verify(tokens: list[int], output: list[bytes]) -> None:
        changed = hashed([tokens[0] ^ 1, *tokens[1:]])
        if len(set(output)) != count // PAGE or set(output) & set(changed):
            raise WrongResult(
                "vllm-config: page hashes are wrong",
                cause="two pages share a hash, or a changed first token leaves a later hash as it was",
                remedy="read hashed(); nothing was stored",
            )

    return {"pickled-sha256": Candidate(prepare, hashed, verify, count * 1e-10)}


def hand_over(inputs: Mapping[str, float]) -> dict[str, Candidate]:
    """One image from the front end to every worker: pickled through a socket each, or written once into shared memory.

    Args:
        inputs: ``item_bytes`` of the image's tensor and ``readers``, the workers.
    """
    size, readers = int(inputs["item_bytes"]), int(inputs["readers"])
    shared = mmap.mmap(-1, size)

    def prepare(rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal(size // 4).astype(np.float32)

    def by_socket(image: np.ndarray) -> list[np.ndarray]:
        with ThreadPoolExecutor(readers) as pool:
            pairs = [socket.socketpair() for _ in range(readers)]
            waiting = [pool.submit(_receive, reader) for _, reader in pairs]
            for writer, _ in pairs:
                data = pickle.dumps(image, protocol=pickle.HIGHEST_PROTOCOL)
                writer.sendall(len(data).to_bytes(8, "little") + data)
            got = [one.result() for one in waiting]
            for pair in pairs:
                for end in pair:
                    end.close()
        return got

    def by_memory(image: np.ndarray) -> list[np.ndarray]:
        view = np.frombuffer(shared, dtype=np.float32)
        with ThreadPoolExecutor(readers) as pool:
            np.copyto(view, image)
            waiting = [pool.submit(np.frombuffer, shared, np.float32) for _ in range(readers)]
            return [one.result() for one in waiting]

    def verify(image: np.ndarray, output: list[np.ndarray]) -> None:
        if len(output) != readers or not all(np.array_equal(got, image) for got in output):
            raise WrongResult(
                "vllm-config: a worker got another image",
                cause="bytes were lost or reordered on the way",
                remedy="read hand_over(); nothing was stored",
            )

    return {
        "socket": Candidate(prepare, by_socket, verify, size / 1e12),
        "shared-memory": Candidate(prepare, by_memory, verify, size / 1e12),
    }


def _receive(end: socket.socket) -> Any:
    """Read one framed object."""
    frame = bytearray()
    while len(frame) < 8:  # noqa: PLR2004  the length comes first
        frame += end.recv(8 - len(frame))
    data, done = bytearray(int.from_bytes(frame, "little")), 0
    view = memoryview(data)
    while done < len(data):
        done += end.recv_into(view[done:])
    return pickle.loads(data)  # noqa: S301  our own bytes, from this process
