"""The words of the field in names of columns and in answers: roles, directions, places, in the languages of labs.

A name is read as words without accents, so `imageLeft`, `image_left` and `Image links` have a place in common.
`sign_of` is the direction that words have: 1 nearer ("more similar"), -1 farther ("least like", "odd"), 0 none.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|\{n\}")


@lru_cache(1 << 14)
def words_of(name: str) -> tuple[str, ...]:
    """The words of a name in lower case, without accents; digits are words.

    >>> words_of("Input.stimulusLeft_2"), words_of("Unähnlicher")
    (('input', 'stimulus', 'left', '2'), ('unahnlicher',))
    """
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    return tuple(word.lower() for word in _WORDS.findall("".join(c for c in plain if not unicodedata.combining(c))))


def in_one_word(name: str) -> str:
    """The words of a name, joined: what differs in case, accents and signs alone is the same.

    >>> in_one_word("Participant ID"), in_one_word("participant-id")
    ('participantid', 'participantid')
    """
    return "".join(words_of(name))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ANCHOR = _words(
    "anchor target center centre head probe reference ref referent standard query base cue focal sample given stem "
    "referenz bezug ziel vorlage zielbild cible modele objetivo referencia modelo riferimento ancla ancre anker "
    "alvo referentie"
)
CENTRAL = _words("central typical representative prototype prototypical medoid zentral typisch typischste")
ANSWER = _words(
    "answer answered response choice chosen selected selection select pick picked said winner clicked click button "
    "keys key press keypress keyboard resp decision judgment judgement label value vote voted verdict result outcome "
    "choose chose eval antwort auswahl wahl gewahlt entscheidung reponse choix choisi choisie respuesta eleccion "
    "elegido elegida seleccion risposta scelta keuze antwoord taste resposta escolha"
)
TRUTH = _words(
    "corr corrans correctans incorrect correct expected truth solution accuracy acc gold golden hit error richtig "
    "korrekt correcto juste"
)
OTHER = _words(
    "rt time latency duration seconds ms onset started stopped index id timestamp confidence certainty rating sure "
    "comment comments reason why remark sicherheit kommentar zeit reaktionszeit temps tiempo date trial attempt order "
    "rank ranks position count"
)
ROUNDS = _words("round block session wave batch trial repetition durchgang runde runda bloc manche ronda bloque blocco")
SWAP = _words("swap swapped flip flipped reverse reversed mirrored inverted switched vertauscht getauscht invertido")
POSITION = _words("pos position side loc location place seite platz counterbalance counterbalanced counterbalancing")
VOTES = _words("vote votes count counts n num stimmen votos")
SHARE = _words("share judge fraction proportion prop p prob preference percent anteil")
OBJECTS = _words(
    "option opt choice alternative alt comparison candidate item stimulus stim image img picture pic object word name "
    "text photo face sound left right l r bild objekt objet objeto imagen mot palabra wort reiz"
)
LISTS = _words(
    "shown options choices images items alternatives candidates objects stimuli bilder objekte reize objets objetos "
    "triplet triple triad triade trio set pictures words"
)
MATERIAL = _words("filename file path url src category kategorie type group id class name")  # of what was shown

_NEARER = _words(
    "sim similar similarity similarly alike near nearer nearest close closer closest like match matching winner won "
    "preferred best positive related most proche similaire semblable ressemblant parecido parecida similares cercano "
    "cercana simile vicino gelijkend naher nahe nachste nachster nachsten naeher ahnlich ahnlicher ahnlichste "
    "ahnlichster ahnlichsten"
)
_FARTHER = _words(
    "far farther farthest further furthest distant different differs dissimilar dissimilarity unlike unalike loser "
    "lost rejected reject worst negative unrelated odd ooo oddone oddity outlier unchosen unselected unpicked "
    "discarded eliminated removed remote intrus intruse intruso intrusa ausreisser fremd anders verschieden entfernt "
    "entfernter entfernteste ferner weiter unahnlich unahnlicher unahnlichste unahnlichster unahnlichsten abweichend "
    "abweichende eloigne eloignee differente dissemblable diferente distinto distinta lejano lejana diverso diversa "
    "lontano verschillend diff dissim "
    "difference differences dis unterschied unterschiedlich unterschiedlicher unterschiedlichste unterschiedlichsten "
    "verschiedener verschiedenste verschiedensten "
    "mismatch mismatched misfit foreign alien fremdling excluded exclude dropped avoided avoid ruled"
)
_NEGATED = _words("didnt doesnt isnt dont arent didn doesn isn don aren never without except pas kein keine niet geen")
_REVERSED = _NEGATED | _words("less least not non weniger wenigsten wenigste nicht moins menos meno minst minder")
NEAR, FAR = _NEARER - {"most", "like", "related"}, _FARTHER | _REVERSED


def sign_of(words: Iterable[str]) -> int:
    """The direction of these words.

    >>> [sign_of(words_of(name)) for name in ("less_similar", "leastDifferent", "odd one out", "choice", "Unähnlicher")]
    [-1, 1, -1, 0, -1]
    """
    words = list(words)
    if {"no", "pertenece"} <= {*words}:
        return -1
    nearer, farther = _NEARER.intersection(words), _FARTHER.intersection(words)
    back = sum(word in _REVERSED for word in words) % 2
    sign = -1 if farther else 1 if nearer else 0
    return (-sign or -1) if back else sign


def asks(text: str) -> int:
    """The direction that a text asks for: a question, or a word such as "dissimilar"; 0 where it is not clear.

    >>> asks("Which is the odd one out?"), asks("Two different birds: which is more similar?"), asks("Less like it?")
    (-1, 0, -1)
    >>> asks("choose_farthest"), asks("pick-most-similar"), asks("far_away.png")
    (-1, 1, 0)
    """
    words = [word for word in words_of(text[:400]) if word not in _OTHERWISE]
    nearer, farther, back = ([word for word in words if word in some] for some in (_NEARER, _FARTHER, _REVERSED))
    joined = len(words) > 1 and " " not in text.strip()  # the name of a file, if it tells nobody to choose
    if not (nearer or farther or back) or (joined and not _INSTRUCTION.intersection(words)):
        return 0
    return (-1 if back else 0) if nearer and farther else sign_of(words)


# that mean something else in instructions, and in the values of other columns
_OTHERWISE = _NEGATED | _words(
    "rejected reject removed lost worst best positive negative eliminated discarded won winner loser match matching "
    "remote preferred related unrelated weiter further fremd non not nicht like close most excluded exclude dropped "
    "avoid avoided foreign ruled"
)


_INSTRUCTION = ANSWER | _words("find identify which most least task wahle finde choisir elige scegli")

_A_TO_H = tuple(map(_words, "abcdefgh"))
_LEFT = _words("left l links linke linkes gauche izquierda izq sinistra esquerda arrowleft leftarrow 37")
_RIGHT = _words("right r rechts rechte rechtes droite derecha der destra direita arrowright rightarrow 39")
_MIDDLE = _words("middle m mid center centre mitte mittig milieu centro medio central")
_UP = _words("up top upper oben haut arriba arrowup uparrow 38")
_DOWN = _words("down bottom lower unten bas abajo arrowdown downarrow 40")
_ORDINALS = (
    _words(
        "first 1st one erste erstes erster eins premier premiere primero primera uno eerste primo prima primeiro "
        "primeira pierwszy pierwsza num1 numpad1 digit1"
    ),
    _words(
        "second 2nd two zweite zweites zweiter zwei deuxieme segundo segunda dos tweede secondo seconda drugi druga "
        "num2 numpad2 digit2"
    ),
    _words(
        "third 3rd three dritte drittes dritter drei troisieme tercero tercera tres derde terzo terza terceiro "
        "terceira trzeci trzecia num3 numpad3 digit3"
    ),
    _words("fourth 4th four vierte viertes vier quatrieme cuarto cuarta cuatro vierde quarto quarta czwarty czwarta"),
)
Places = tuple[frozenset[str], ...]
PLACES: tuple[Places, ...] = (  # words for the first, the second, ... of several objects
    *((_LEFT, middle, _RIGHT) for middle in (_MIDDLE, _DOWN, _UP)),
    *((_UP, _MIDDLE, _DOWN), (_LEFT, _RIGHT), (_UP, _DOWN)),
    *((_words(left), _words("d")) for left in "gi"),  # gauche or izquierda, and droite or derecha
    *(_ORDINALS[:size] for size in (4, 3, 2)),
    *(_A_TO_H[:size] for size in range(8, 1, -1)),
)
SPATIAL = PLACES[:5]
ORDINALS = tuple(_ORDINALS[:size] for size in (4, 3, 2))
NUMBERED: tuple[Places, ...] = tuple(
    tuple(frozenset((str(number),)) for number in range(first, first + size))
    for size in range(12, 1, -1)
    for first in (0, 1)
)
SIDES = _LEFT | _RIGHT
ENDS = SIDES | _UP | _DOWN  # with or without something in the middle

_PARTICIPANTS = (
    "worker workerid participantprivateid participantid participant participantcode subjectid subject subj "
    "subjectnr subjectnumber prolificpid prolificid participantpublicid pid puid participantuid respondentid "
    "respondent responseid userid user annotator rater completedby annotationscompletedby judge observer "
    "participation srid runid sessionid token id studyresultid informant raterid judgeid observerid annotatorid "
    "obs coder emailaddress username person assignmentworkerid participante partecipante soggetto proefpersoon "
    "agentid vp vpn vpnr vpcode versuchsperson proband teilnehmer case recordid sujet sujeto who session"
)
_PEOPLE = (  # with and without a word for a number
    "participant subject worker respondent rater annotator proband probanden versuchsperson versuchspersonen "
    "vp vpn pbn ppt ppn pp participante sujet sujeto participants repondant deelnemer proefpersoon prolific sona mturk "
    "teilnehmer teilnehmerin panelist subj sub studysubject labeler labeller turker student child kind befragter"
)
_NUMBERS = ("id", "nr", "no", "num", "number", "code", "pid", "name", "nummer", "kurzel", "numero")
PARTICIPANTS = tuple(  # the likeliest first
    dict.fromkeys(
        (
            *_PARTICIPANTS.split(),
            *(person + number for person in _PEOPLE.split() for number in _NUMBERS),
            *(number + person for person in _PEOPLE.split() for number in ("id", "nr", "num", "numero", "code", "no")),
            *(person for person in _PEOPLE.split() if person not in ("kind", "sona", "mturk", "prolific")),
        )
    )
)


def place_in(words: Sequence[str], order: Places) -> int:
    """Which place of an order words name, if they name one alone; else -1."""
    matches = {place for place, synonyms in enumerate(order) if synonyms.intersection(words)}
    return matches.pop() if len(matches) == 1 else -1
