"""NaN and infinity in JSON, which has no text for them: infinity is written as `1e999`, a number beyond the range of a
double, NaN as `1e99999`. Libraries write `null`, which would come back as an absent value."""

import math
from typing import Any

import msgspec

_TEXTS = {"nan": "1e99999", "inf": "1e999", "-inf": "-1e999"}
_RAW = {name: msgspec.Raw(text.encode()) for name, text in _TEXTS.items()}


def number(text: str) -> float:
    """The number of a JSON text.

    >>> number("1e999"), number("-1e999"), number("1e99999"), number("1.5")
    (inf, -inf, nan, 1.5)
    """
    return math.nan if text == _TEXTS["nan"] else float(text)


def writable(value: Any) -> Any:
    """A value that msgspec writes so that `number` reads it back; the value itself if all of its floats are finite.

    >>> msgspec.json.encode(writable({"a": [float("nan"), 1.5], "b": -float("inf")}))
    b'{"a":[1e99999,1.5],"b":-1e999}'
    """
    return value if _is_finite(value) else _with_texts(value)


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    return all(map(_is_finite, value)) if isinstance(value, list | tuple) else True


def _with_texts(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else _RAW[str(float(value))]
    if isinstance(value, dict):
        return {name: _with_texts(entry) for name, entry in value.items()}
    return [_with_texts(entry) for entry in value] if isinstance(value, list | tuple) else value
