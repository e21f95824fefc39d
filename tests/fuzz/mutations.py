"""Damage to bytes that keeps much of their structure: tokens put in, pieces dropped, doubled, moved and cut off."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

CORPUS = Path(__file__).parent / "corpus"


def damaged(rng: Random, data: bytes, tokens: Sequence[bytes], most: int = 4) -> bytes:
    """`data` with up to `most` changes."""
    for _ in range(rng.randint(1, most)):
        at = rng.randint(0, len(data))
        how = rng.random()
        if how < 0.5:
            data = data[:at] + rng.choice(tokens) + data[at + (rng.random() < 0.5) :]
        elif how < 0.65:
            data = data[:at] + data[at + rng.randint(1, 12) :]
        elif how < 0.75:
            end = at + rng.randint(1, 30)
            data = data[:end] + data[at:end] + data[end:]
        elif how < 0.85:
            end = at + rng.randint(1, 20)
            to = rng.randint(0, len(data))
            piece, rest = data[at:end], data[:at] + data[end:]
            data = rest[:to] + piece + rest[to:]
        elif how < 0.95 and data:
            at = min(at, len(data) - 1)
            data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        else:
            data = data[:at]
    return data


def flipped(rng: Random, data: bytes, most: int = 6) -> bytes:
    """Binary data with a few bytes changed, numbers made huge or negative, or its end cut off."""
    out = bytearray(data)
    for _ in range(rng.randint(1, most)):
        if not out:
            break
        at = rng.randrange(len(out))
        how = rng.random()
        if how < 0.5:
            out[at] ^= 1 << rng.randrange(8)
        elif how < 0.65:
            out[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif how < 0.85:
            number = rng.choice((0, 1, -1, 2**31 - 1, -(2**31), 1 << 20, len(out)))
            at -= at % 4
            out[at : at + 4] = (number & 0xFFFFFFFF).to_bytes(4, "little")
        elif how < 0.92:
            del out[at : at + rng.randint(1, 64)]
        elif how < 0.97:
            out[at:at] = out[at : at + rng.randint(1, 64)]
        else:
            del out[at:]
    return bytes(out)


_KEPT: dict[str, list[bytes]] = {}


def kept_cases(target: str) -> list[bytes]:
    """The cases of the corpus for a target, in the order of their names."""
    if target not in _KEPT:
        _KEPT[target] = [path.read_bytes() for path in sorted((CORPUS / target).glob("*"))]
    return _KEPT[target]


def kept_case(rng: Random, target: str) -> bytes | None:
    """Now and then a case of the corpus to begin with."""
    cases = kept_cases(target)
    return rng.choice(cases) if cases and rng.random() < 0.1 else None
