"""What a question asks for in words: the nearer or the farther object, or something that is not certain.

A negation turns the word that it stands beside: "does not match" asks for the farther object. Where a text denies
something else, or compares by a word that is not known here, it is not certain what it asks for.
"""

import re
from typing import NamedTuple

from stream_engine.formats.vocabulary import FARTHER, NEARER, accentless, asks, words_of

MIN_WORDS = 4  # of a question; fewer are a name
_BEFORE, _AFTER, _DEGREE = 4, 2, 2  # words between a word of comparison, and one that turns or grades it


class Asked(NamedTuple):
    """What a text asks for: 1 the nearer object, -1 the farther one, 0 neither; why that is not certain, "" where it
    is; and whether a negation has a part in it."""

    sign: int
    doubt: str = ""
    denies: bool = False


_NEAR = NEARER | accentless(
    "match matches matching fit fits fitting suits belong belongs belonging resemble resembles resembling "
    "corresponds passt passen gehort gehoren zugehorig entspricht ahneln gleichen ressemblent appartient "
    "appartiennent correspond correspondent convient pertenece pertenecen parece parecen corresponde encaja "
    "asemeja pertence combina appartiene corrisponde somigliano assomiglia abbina hoort behoort past lijken "
    "passar passer horer horer tilhorer tillhor kuuluu sopii muistuttaa pasuje nalezy przypomina patri hodi "
    "podoba illik tartozik potriveste apartine uyuyor benziyor подходит похожа похожи относится соответствует "
    "принадлежит схожа схож підходить належить ταιριαζει μοιαζει cocok sesuai"
)
_WITH = {
    ("in", "common"),
    ("go", "with"),
    ("goes", "with"),
    ("going", "with"),
    ("go", "together"),
    ("goes", "together"),
} | {
    *(("va", "avec"), ("vont", "avec"), ("va", "con"), ("hor", "ihop"), ("hor", "till"), ("horer", "sammen")),
    *(("horer", "til"), ("horen", "bij"), ("vai", "com"), ("sta", "con"), ("gaat", "bij"), ("idzie", "z")),
}
_FAR = FARTHER | accentless(
    "differ differing unterscheidet unterscheiden unterscheidend differe different difieren difiere difere diferem "
    "differisce differiscono verschilt verschillen skiljer adskiller skiller eroaa rozni lisi kulonbozik difera "
    "farklidir отличается отличаются відрізняється διαφερει "
    "remove eliminate discard drop entfernen weglassen aussortieren enlever eliminer retirer quitar eliminar "
    "rimuovere togliere eliminare escludere verwijderen weghalen fjerne poista usunac odstranit "
    "eltavolit sobra"
)
_LESS = accentless(
    "less least worse worst poorer poorest weniger wenigsten wenigste schlechter schlechtesten moins pire menos "
    "peor meno peggio minst minder mindst mindre vahiten vahemman najmniej mniej nejmene mene legkevesbe kevesbe "
    "putin менее наименее меньше менш найменш λιγοτερο kurang"
)
_TURKISH_LESS = (("en", "az"), ("daha", "az"))  # alone, `az` is an article of Hungarian
_NOT = accentless(
    "not nt isnt doesnt dont arent didnt cannot cant wouldnt never neither nor nothing none nicht kein keine "
    "keiner keinem keinen keines nie niemals weder pas aucun aucune jamais non nessun nessuno nessuna ningun "
    "ninguna ninguno nunca tampoco nao niet geen nooit inte ej ingen inga ikke aldrig aldri ei eivat eika nie ne "
    "nem nu degil не нет ні δεν μη μην tidak bukan לא אינו ليس لا"
)
_NOT_AFTER = accentless("nicht pas niet inte ikke ej degil")
_MORE = accentless(
    "more most mehr am plus mas mais piu meer meest mer mest enemman eniten bardziej najbardziej vice nejvice"
)
_ASKING = accentless(
    "which what who whom choose select click pick press tap find identify mark decide welche welches welcher "
    "welchen wahle wahlen klicke klicken quel quelle lequel laquelle choisissez choisir cliquez cual elija elige "
    "seleccione quale scegli clicca qual escolha clique welk welke kies klik vilken vilket valj klicka hvilken "
    "hvilket hvilke velg vaelg kumpi mika valitse ktory ktora ktore wybierz ktery ktera ktere vyberte melyik "
    "valassza care alegeti hangi hangisi secin какой какая какое какие выберите який яка яке виберіть ποιο ποια "
    "επιλεξτε mana pilih"
)
_UNSPACED = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{4}")  # of languages that part no words
_NEAR_IN = re.compile("相似|像|接近|最近|似て|似た|近い|類似|비슷|가까|닮|유사")
_FAR_IN = re.compile("不同|差异|差異|最远|最遠|違う|違って|遠い|異なる|다른|다릅|먼 |멀")
_NOT_IN = re.compile("不|没|沒|ない|ません|않|아닌|없")
_PORTUGUESE = accentless("qual mais nao imagem voce")
_IDIOMS = re.compile(r"\bnot (?:only|just|necessarily)\b|\bno matter\b|\bwhether or not\b|\bor not\b", re.IGNORECASE)
_SHORT = re.compile(r"n['\u2019\u00b4`]t\b|\bcannot\b", re.IGNORECASE)
_CLAUSE = re.compile(r"[^.!?;:,\n()]+[.!?;:,\n()]*")


def asked(text: str) -> Asked:
    """What a text asks for.

    >>> [asked(text).sign for text in ("Which does not match it?", "Was passt nicht dazu?", "Which isn't unlike it?")]
    [-1, -1, 1]
    >>> asked("Which would you not eat with it?").doubt, asked("Which one would you rather eat with it?").doubt
    ('denies something', 'compares by no word that is known')
    >>> asked("All are different: which is the most similar?"), asked("left image")
    (Asked(sign=1, doubt='', denies=False), Asked(sign=0, doubt='', denies=False))
    """
    if _UNSPACED.search(text):
        return _asked_unspaced(text[:400])
    text = _SHORT.sub(" not ", _IDIOMS.sub(" ", text[:400]))
    clauses = [(words_of(clause), "?" in clause) for clause in _CLAUSE.findall(text)]
    n_words = sum(len(words) for words, _ in clauses)
    if " " not in text.strip() or (n_words < MIN_WORDS and "?" not in text):
        return Asked(asks(text))
    no_is_in = bool(_PORTUGUESE & {word for words, _ in clauses for word in words})
    parts = [_clause(words, question or bool(_ASKING & {*words}), no_is_in) for words, question in clauses]
    decisive = [part for part in parts if part.asks and (part.sign or part.doubt)] or parts
    signs = {part.sign for part in decisive if part.sign}
    denies = any(part.denies for part in parts)
    if n_words < MIN_WORDS:  # of a survey's other questions, too
        return Asked(signs.pop() if len(signs) == 1 else 0)
    if doubt := next((part.doubt for part in decisive if part.doubt), ""):
        return Asked(0, doubt, denies)
    if len(signs) == 1:
        return Asked(signs.pop(), "", denies)
    if signs:
        return Asked(0, "denies something" if denies else "", denies)
    is_asked = any(part.asks for part in parts)
    return Asked(0, ("denies something" if denies else UNKNOWN) if is_asked else "", denies)


def _asked_unspaced(text: str) -> Asked:
    """What a text asks for in a language that parts no words.

    >>> [_asked_unspaced(text).sign for text in ("哪个更相似", "哪个更不相似", "どちらが似ていないですか")]
    [1, -1, -1]
    """
    far, rest = bool(_FAR_IN.search(text)), _FAR_IN.sub("", text)
    near, denies = bool(_NEAR_IN.search(rest)), bool(_NOT_IN.search(rest))
    if far and (near or denies):
        return Asked(0, "denies something" if denies else "", denies)
    if far or near:
        return Asked(-1 if far or denies else 1, "", denies)
    denies = denies and ("?" in text or "\uff1f" in text)
    return Asked(0, "denies something" if denies else "", denies)


def is_text(text: str) -> bool:
    """Whether a text is more than a word.

    >>> is_text("left"), is_text("more like it"), is_text("哪个更相似")
    (False, True, True)
    """
    return " " in text or _UNSPACED.search(text) is not None


def is_question(name: str) -> bool:
    """Whether the name of a column is long enough for a question."""
    return len(words_of(name)) > MIN_WORDS or _UNSPACED.search(name) is not None


def asked_in_name(name: str) -> Asked:
    """What the name of a column asks for, with spaces or without.

    >>> asked_in_name("Which.one.does.not.match.it.").sign, asked_in_name("rt").sign
    (-1, 0)
    """
    return asked(name if " " in name else " ".join(words_of(name)))


UNKNOWN = "compares by no word that is known"  # the doubt of a question that denies nothing


class _Clause(NamedTuple):
    sign: int
    doubt: str
    denies: bool
    asks: bool


def _clause(words: tuple[str, ...], is_asked: bool, no_is_in: bool) -> _Clause:
    """What the words between two signs ask for; `no_is_in`: in this language, `no` means `in the`."""
    negations = [place for place, word in enumerate(words) if word in _NOT or (word == "no" and not no_is_in)]
    less = [place for place, word in enumerate(words) if word in _LESS or words[place - 1 : place + 1] in _TURKISH_LESS]
    signs, graded = set(), set()
    for place, word in enumerate(words):
        base = -1 if word in _FAR else 1 if _is_near(words, place) else 0
        if not base or place in less or place in negations:
            continue
        denied = any(
            0 < place - other <= _BEFORE or (words[other] in _NOT_AFTER and 0 < other - place <= _AFTER)
            for other in negations
        )
        lessened = any(abs(place - other) <= _BEFORE for other in less)
        if denied and lessened:
            return _Clause(0, "denies something", True, is_asked)
        sign = -base if denied or lessened else base
        signs.add(sign)
        if lessened or denied or any(0 < place - other <= _DEGREE and words[other] in _MORE for other in range(place)):
            graded.add(sign)
    signs = graded if len(signs) > 1 and len(graded) == 1 else signs
    if not signs and less and is_asked:
        return _Clause(0, "compares by no word that is known, and asks for less of it", True, is_asked)
    if len(signs) > 1:
        return _Clause(0, "denies something" if negations else "", bool(negations), is_asked)
    if not signs and negations and is_asked:
        return _Clause(0, "denies something", True, is_asked)
    return _Clause(signs.pop() if signs else 0, "", bool(negations), is_asked)


def _is_near(words: tuple[str, ...], place: int) -> bool:
    """Whether a word says that things are near, alone or with one of those that follow: go with, va avec."""
    return words[place] in _NEAR or any((words[place], word) in _WITH for word in words[place + 1 :])
