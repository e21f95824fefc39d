"""In which encodings text that is not UTF-8 may be, with a word that tells them apart.

Each encoding is judged by the words that it reads: how probable they are in the language that fits best, where a
language is its letters. An encoding that reads symbols, letters of no one language, or capitals within words is
improbable.
"""
# ruff: noqa: RUF001

import re
from contextlib import suppress
from functools import cache
from math import log
from typing import NamedTuple

from stream_engine.formats.json_places import is_utf8

# Of spreadsheets and experiments; those of Windows before those of the web, of DOS and of the Mac, if they read alike.
COMMON = (
    *("cp1252", "cp1250", "cp1251", "cp932", "gb18030", "cp949", "big5", "cp1254", "cp1253", "cp1255", "cp1256"),
    *(
        "cp1257",
        "cp1258",
        "cp874",
        "iso8859_2",
        "iso8859_15",
        "koi8_r",
        "koi8_u",
        "iso8859_5",
        "iso8859_6",
        "iso8859_7",
    ),
    *("iso8859_8", "iso8859_13", "iso8859_4", "iso8859_3", "iso8859_14", "iso8859_16", "euc_jp", "cp850", "cp437"),
    *("cp852", "cp866", "cp855", "cp775", "cp857", "cp737", "cp862", "cp864", "cp865", "cp861", "cp863", "cp860"),
    *("cp869", "cp720", "cp1125"),
    *("mac_roman", "mac_latin2", "mac_cyrillic", "mac_greek", "mac_turkish", "mac_iceland", "johab"),
)
# Letters beyond ASCII, by language.
ALPHABETS = {
    "German": "äöüß",
    "French": "àâæçéèêëîïôœùûü",
    "Spanish": "áéíóúüñ",
    "Italian": "àèéìîòù",
    "Portuguese": "ãáâàçéêíóôõúü",
    "Catalan": "àçéèíïóòúü",
    "Dutch": "éëïóèöü",
    "Swedish": "åäöé",
    "Danish": "æøåé",
    "Icelandic": "áéíóúýþæðö",
    "Estonian": "äöüõšž",
    "Polish": "ąćęłńóśźż",
    "Czech": "áčďéěíňóřšťúůýž",
    "Slovak": "áäčďéíĺľňóôŕšťúýž",
    "Hungarian": "áéíóöőúüű",
    "Romanian": "ăâîșțşţ",
    "Croatian": "čćđšž",
    "Lithuanian": "ąčęėįšųūž",
    "Latvian": "āčēģīķļņšūž",
    "Turkish": "çğıİöşüâî",
    "Welsh": "âêîôûŵŷ",
    "Russian": "абвгдеёжзийклмнопрстуфхцчшщъыьэюя",
    "Ukrainian": "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя",
    "Bulgarian": "абвгдежзийклмнопрстуфхцчшщъьюя",
    "Belarusian": "абвгдеёжзійклмнопрстуўфхцчшыьэюя",
    "Serbian": "абвгдђежзијклљмнњопрстћуфхцчџш",
    "Greek": "αβγδεζηθικλμνξοπρστυφχψωςάέήίόύώϊϋΐΰ",
    "Hebrew": "אבגדהוזחטיךכלםמןנסעףפץצקרשת",
    "Arabic": "ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىي",
    "Persian": "ءآأؤئابپتثجچحخدذرزژسشصضطظعغفقکگلمنهوی",
    "Thai": "".join(map(chr, (*range(0x0E01, 0x0E3B), *range(0x0E40, 0x0E4F)))),
    "Vietnamese": "àáâãèéêìíòóôõùúýăđĩũơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ\u0300\u0301\u0303\u0309\u0323",
}
# The first bytes of the more common characters of languages with thousands of them.
LEVELS = {
    "Chinese": ("gb2312", range(0xB0, 0xD8)),
    "Chinese (traditional)": ("big5", range(0xA4, 0xC7)),
    "Japanese": ("euc_jp", (0xA4, 0xA5, *range(0xB0, 0xD0))),
    "Korean": ("euc_kr", range(0xB0, 0xC9)),
}
N_LATIN = [*ALPHABETS].index("Russian")  # languages before are in Latin letters
APOSTROPHES, MARKS = {*"’·"}, {*"–—‘“”„«»…。、ー・\u3000"}  # within words, and at their ends
SHIFTS = {b"\x1b$)C": "iso2022_kr", b"\x1b$": "iso2022_jp"}  # of ASCII alone, to other characters
OTHER = log(1e-5)  # of a letter of another language, a symbol, or a capital within a word
MORE_COMMON = 5.0  # the logarithm of how much more common the first encoding is, which Excel writes
CAPITAL, MARK = log(0.1), log(0.01)
MIN_LETTERS = 12  # a language with fewer beyond ASCII is no more probable for each
MAX_BYTES = 1 << 16
LESS_LIKELY = 5.0  # of the logarithm, for each character, up to which another encoding is likely, too
MAX_LIKELY = 3
SEPARATORS = re.compile(r'[,;|"\t\r\n ]+')


class Decoded(NamedTuple):
    """An encoding, and a word that it reads and others read differently, if there are others."""

    encoding: str
    word: str


def shifted_encoding(text: bytes) -> str:
    """The encoding of a text that is ASCII alone, and shifts to other characters; "" of others.

    >>> shifted_encoding("りんご".encode("iso2022_jp")), shifted_encoding(b"apple")
    ('iso2022_jp', '')
    """
    for start, encoding in SHIFTS.items() if text.isascii() else ():
        with suppress(UnicodeDecodeError):
            if start in text and not text.decode(encoding).isascii():
                return encoding
    return ""


def is_utf8_in_part(text: bytes) -> bool:
    """Whether lines of a text are UTF-8 beyond ASCII: of the others, it is not known that they are in one encoding.

    >>> is_utf8_in_part("Käse\\n".encode() + b"K\\xe4se\\n"), is_utf8_in_part(b"Brot\\nK\\xe4se\\n")
    (True, False)
    """
    return any(not line.isascii() and is_utf8(line) for line in text[:MAX_BYTES].splitlines()[:-1])


def likely_encodings(text: bytes) -> list[Decoded]:
    """The encodings in which a text that is not UTF-8 may be, the likeliest first; of those that read the same, the
    most common.

    >>> likely_encodings("参加者,刺激,回答\\nりんご,フォーク,なし\\n".encode("cp932"))[0]
    Decoded(encoding='cp932', word='参加者')
    """
    text = text[:MAX_BYTES].rpartition(b"\n")[0] or text[:MAX_BYTES]
    shifted = shifted_encoding(text)
    words: dict[tuple[str, ...], str] = {}  # encodings by what they read
    for encoding in (shifted,) if shifted else COMMON:
        with suppress(UnicodeDecodeError):
            words.setdefault(tuple(dict.fromkeys(SEPARATORS.split(text.decode(encoding)))), encoding)
    fits = {
        read: _fit([word for word in read if not word.isascii()]) + (MORE_COMMON if encoding == COMMON[0] else 0)
        for read, encoding in words.items()
    }
    ordered = sorted(words, key=lambda read: -fits[read])[:MAX_LIKELY]
    n_characters = sum(not each.isascii() for read in ordered[:1] for each in "".join(read))
    likely = [read for read in ordered if fits[read] >= fits[ordered[0]] - LESS_LIKELY * n_characters]
    rows = [row for row in zip(*likely) if not all(map(str.isascii, row))]
    of_each = max(rows, key=lambda row: (-row.count(row[0]), len({*row})), default=("",) * len(likely))
    return [Decoded(words[read], word) for read, word in zip(likely, of_each)]


def _fit(words: list[str]) -> float:
    """How probable words are in the language that fits best (log)."""
    return max(sum(_fit_of_word(word, *language) for word in words) for language in _languages())


def _fit_of_word(word: str, letters: frozenset[str], is_alphabet: bool, is_latin: bool) -> float:
    """How probable the characters beyond ASCII of a word are in a language (log)."""
    fit, of_letter = 0.0, -log(max(len(letters), MIN_LETTERS))
    is_mixed = is_alphabet and not is_latin and any(each.isascii() and each.isalpha() for each in word)
    for place, each in enumerate(word):
        if each.isascii():
            continue
        before, after = word[max(place - 1, 0) : place], word[place + 1 : place + 2]
        within = before.isalpha() and after.isalpha() and (is_alphabet or (before + after).isascii())
        if each in letters and not is_mixed:
            fit += of_letter
        elif each in APOSTROPHES or (each in MARKS and not within):
            fit += MARK
        elif each.lower() in letters and not is_mixed and (not before.isalpha() or word.isupper()):
            fit += of_letter + (0.0 if before.isalpha() else CAPITAL)
        else:
            fit += OTHER if each.isprintable() else 3 * OTHER
    return fit


@cache
def _languages() -> list[tuple[frozenset[str], bool, bool]]:
    """The letters of each language, whether they are an alphabet, and a Latin one."""
    alphabets = [(frozenset(letters), True, nth < N_LATIN) for nth, letters in enumerate(ALPHABETS.values())]
    levels = [
        bytes(byte for first in firsts for second in range(0x40, 0xFF) for byte in (first, second)).decode(
            encoding, "ignore"
        )
        for encoding, firsts in LEVELS.values()
    ]
    return [*alphabets, *((frozenset(each for each in text if not each.isascii()), False, False) for text in levels)]


def encoding_in_words(text: bytes) -> str:
    """What to specify for a text that is not UTF-8.

    >>> print(encoding_in_words("Käse,Brot\\n".encode("cp1252")))
    --encoding cp1252 if 'Käse' is right, or --encoding cp850 if 'Kõse' is right, or --encoding cp852 if 'Kńse' is right
    """
    likely = likely_encodings(text)
    if not likely:
        return f"--encoding (none of {', '.join(COMMON)} reads all of it)"
    if len(likely) == 1:
        return f"--encoding {likely[0].encoding}, which reads {likely[0].word!r}"
    return ", or ".join(f"--encoding {encoding} if {word!r} is right" for encoding, word in likely)
