"""In which encodings text that is not UTF-8 may be, by charset-normalizer, with a word that tells them apart."""

import re
from contextlib import suppress
from typing import NamedTuple

# Of spreadsheets and experiments, the more common before the less common where both fit.
COMMON = (
    *("cp1252", "cp1250", "cp1251", "cp932", "gb18030", "cp949", "big5"),
    *("cp1254", "cp1253", "cp1255", "cp1256", "cp1257", "mac_roman"),
)
LATIN = ("cp1252", "cp1250", "cp1254", "cp1257", "mac_roman")
MAX_BYTES = 1 << 16
MORE_MESS = 0.05  # than the cleanest text, up to which another encoding is likely, too
FEW_BYTES = 40  # beyond ASCII, which tell nothing
MAX_LIKELY = 3
SEPARATORS = re.compile(r'[,;|"\s]+')


class Decoded(NamedTuple):
    """An encoding, and a word that it reads and others read differently, if there are others."""

    encoding: str
    word: str


def likely_encodings(text: bytes) -> list[Decoded]:
    """The encodings in which a text that is not UTF-8 may be, the likeliest first; of those that read the same, the
    most common.

    >>> likely_encodings("参加者,刺激,回答\\nりんご,フォーク,なし\\n".encode("cp932"))[0]
    Decoded(encoding='cp932', word='参加者')
    """
    from charset_normalizer import from_bytes

    text = text[:MAX_BYTES].rpartition(b"\n")[0] or text[:MAX_BYTES]
    matches = list(from_bytes(text, cp_isolation=list(COMMON)))
    clean = [match for match in matches if match.chaos <= matches[0].chaos + MORE_MESS]
    likely = sorted({min(match.could_be_from_charset, key=COMMON.index) for match in clean}, key=COMMON.index)
    if not likely or likely[0] in LATIN or sum(byte > 127 for byte in text) < FEW_BYTES:
        likely.insert(0, "cp1252")  # Excel on Windows
    texts: dict[str, str] = {}  # encodings by what they read
    for encoding in (*likely, *(COMMON if not matches else ())):
        with suppress(UnicodeDecodeError):
            texts.setdefault(text.decode(encoding), encoding)
    encodings = list(texts.values())[:MAX_LIKELY]
    rows = [row[:MAX_LIKELY] for row in zip(*map(SEPARATORS.split, texts)) if not all(map(str.isascii, row))]
    words = max(rows, key=lambda row: len({*row}), default=("",) * len(encodings))
    return [Decoded(encoding, word) for encoding, word in zip(encodings, words)]


def encoding_in_words(text: bytes) -> str:
    """What to specify for a text that is not UTF-8.

    >>> print(encoding_in_words("hruška,třešeň,švestka\\nmeloun,čokoláda,jablko\\n".encode("cp1250")))
    --encoding cp1252 if 'tøešeò' is right, or --encoding cp1250 if 'třešeň' is right
    """
    likely = likely_encodings(text)
    if not likely:
        return f"--encoding (none of {', '.join(COMMON)} reads all of it)"
    if len(likely) == 1:
        return f"--encoding {likely[0].encoding}, which reads {likely[0].word!r}"
    return ", or ".join(f"--encoding {encoding} if {word!r} is right" for encoding, word in likely)
