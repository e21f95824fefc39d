"""The words of the field in names of columns and in answers: roles, directions, places, in the languages of labs.

A name is read as words without accents, so `imageLeft`, `image_left` and `Image links` have a place in common.
`sign_of` is the direction that words have: 1 nearer ("more similar"), -1 farther ("least like", "odd"), 0 none.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

_WORDS = re.compile(r"(?<!\d)[1-9](?:st|nd|rd|th)(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|\{n\}|[^\W\d_a-zA-Z]+")
_LETTERS = str.maketrans(
    {"ß": "ss", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "Ae", "ł": "l", "Ł": "L", "đ": "d", "\u0131": "i"}
)


@lru_cache(1 << 14)
def words_of(name: str) -> tuple[str, ...]:
    """The words of a name in lower case, without accents; digits are words, and so are ordinals.

    >>> words_of("Input.stimulusLeft_2"), words_of("Unähnlicher"), words_of("skærm_nr"), words_of("被试ID")
    (('input', 'stimulus', 'left', '2'), ('unahnlicher',), ('skaerm', 'nr'), ('被试', 'id'))
    >>> words_of("1st choice")
    ('1st', 'choice')
    """
    return tuple(word.lower() for word in _WORDS.findall(_without_accents(name)))


def _without_accents(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    return "".join(c for c in plain if not unicodedata.combining(c))


def in_one_word(name: str) -> str:
    """The words of a name, joined: what differs in case, accents and signs alone is the same.

    >>> in_one_word("Participant ID"), in_one_word("participant-id")
    ('participantid', 'participantid')
    """
    return "".join(words_of(name))


def accentless(text: str) -> frozenset[str]:
    """The words of a text, without accents."""
    return frozenset(_without_accents(text).split())


_words = accentless


ANCHOR = _words(
    "anchor target center centre head probe reference ref referent standard query base cue focal sample given stem "
    "referenz bezug ziel vorlage zielbild cible modele objetivo referencia modelo riferimento ancla ancre anker "
    "alvo referentie "
    "uitgangspunt referens udgangspunkt utgangspunkt kohde vertailukohde wzorzec odniesienie vzor minta referans "
    "эталон образец зразок еталон αναφορα ייחוס مرجع 参考 目标 參考 目標 参照 基準 기준 acuan rujukan"
)
CENTRAL = _words("central typical representative prototype prototypical medoid zentral typisch typischste")
ANSWER = _words(
    "answer answered response choice chosen selected selection select pick picked said winner clicked click button "
    "keys key press keypress keyboard resp decision judgment judgement label value vote voted verdict result outcome "
    "choose chose eval antwort auswahl wahl gewahlt entscheidung reponse choix choisi choisie respuesta eleccion "
    "elegido elegida seleccion risposta scelta keuze antwoord taste resposta escolha "
    "svar valg valgt vastaus valinta odpowiedz wybor odpoved volba valasz raspuns alegere cevap yanit secim ответ "
    "выбор відповідь вибір απαντηση επιλογη תשובה בחירה إجابة اختيار پاسخ 回答 选择 答案 選択 응답 선택 jawaban pilihan"
)
TRUTH = _words(
    "corr corrans correctans incorrect correct expected truth solution accuracy acc gold golden hit error richtig "
    "korrekt correcto juste"
)
OTHER = _words(
    "rt time latency duration seconds ms onset started stopped index id timestamp confidence certainty rating sure "
    "comment comments reason why remark sicherheit kommentar zeit reaktionszeit temps tiempo date trial attempt order "
    "rank ranks position count "
    "tid aika czas cas ido timp tempo tijd zaman datum время час дата ωρα זמן وقت زمان 时间 時間 日期 시간 waktu "
    "tanggal"
)
ROUNDS = _words("round block session wave batch trial repetition durchgang runde runda bloc manche ronda bloque blocco")
GROUPS = _words(  # of people or of rows
    "set sex gender genre geschlecht sexo sesso group groupe grupo gruppo groep grupp gruppe ryhma grupa skupina "
    "csoport half version cohort arm группа група ομαδα 组 グループ 그룹"
)
SCREENS = _words(  # on which several answers were given at once
    "screen trial page display slide bildschirm seite versuch durchgang ecran essai pantalla ensayo schermo prova "
    "scherm skarm skaerm skjerm forsok forsog naytto ruutu ekran obrazovka pokus kepernyo proba ecra tela ensaio "
    "tentativa deneme экран проба екран спроба οθονη δοκιμη מסך شاشة محاولة 屏幕 试次 画面 試行 화면 시행 layar "
    "percobaan"
)
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
    "ahnlichster ahnlichsten "
    "lijkt ligner liknar ahnelt gleicht ressemble somiglia assemelha "
    "narmare narmast liknande taettest naermest naermere naer lignende lahempi lahin lahimpana samankaltainen "
    "blizszy blizej najblizszy podobny podobniejszy blizsi nejblizsi podobnejsi hasonlo hasonlobb kozelebbi apropiat "
    "asemanator benzer yakin proximo proxima semelhante похожий похож похоже ближе ближайший схожий "
    "ближче подібний πλησιεστερο παρομοιο דומה קרוב أقرب مشابه 相似 更相似 近い 似ている 비슷한 가까운 mirip terdekat"
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
    "mismatch mismatched misfit foreign alien fremdling excluded exclude dropped avoided avoid ruled "
    "langre avlagsen olik fjernest fjern fjernere forskellig ulik erilainen kauempi kauimpana dalszy najdalszy "
    "odmieniec odmienny vzdalenejsi odlisny kulonbozo tavolabbi diferit indepartat farkli uzak distante longe "
    "непохожий дальше лишний отличающийся відмінний зайвий далі διαφορετικο μακρινο שונה רחוק أبعد مختلف 不同 不相似 "
    "最远 違う 遠い 異なる 다른 먼 berbeda terjauh"
)
_NEGATED = _words("didnt doesnt isnt dont arent didn doesn isn don aren never without except pas kein keine niet geen")
_REVERSED = _NEGATED | _words("less least not non weniger wenigsten wenigste nicht moins menos meno minst minder")
NEAR, FAR = _NEARER - {"most", "like", "related"}, _FARTHER | _REVERSED
NEARER = _NEARER - {"most", "won", "winner", "preferred", "positive", "best"}  # in the words of a question
FARTHER = _FARTHER - {"lost", "loser", "negative", "weiter", "fremd"}


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
    if not (nearer or farther or back) or (joined and not INSTRUCTION.intersection(words)):
        return 0
    return (-1 if back else 0) if nearer and farther else sign_of(words)


# that mean something else in instructions, and in the values of other columns
_OTHERWISE = _NEGATED | _words(
    "rejected reject removed lost worst best positive negative eliminated discarded won winner loser match matching "
    "remote preferred related unrelated weiter further fremd non not nicht like close most excluded exclude dropped "
    "avoid avoided foreign ruled"
)


INSTRUCTION = ANSWER | _words("find identify which most least task wahle finde choisir elige scegli")

_A_TO_H = tuple(map(_words, "abcdefgh"))
_LEFT = _words(
    "left l links linke linkes gauche izquierda izq sinistra esquerda vanster venstre vasen lewy lewo levy vlevo "
    "stanga слева левый лево зліва лівий αριστερα שמאל يسار 左 左边 왼쪽 kiri arrowleft leftarrow 37"
)
_RIGHT = _words(
    "right r rechts rechte rechtes droite derecha der destra direita hoger hojre hoyre oikea prawy prawo pravy vpravo "
    "dreapta справа правый право праворуч правий δεξια ימין يمين 右 右边 오른쪽 kanan arrowright rightarrow 39"
)
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
    "respondent responseid recsessionid userid user annotator rater completedby annotationscompletedby judge observer "
    "participation srid runid sessionid token id studyresultid informant raterid judgeid observerid annotatorid "
    "obs coder emailaddress username person assignmentworkerid participante partecipante soggetto proefpersoon "
    "agentid vp vpn vpnr vpcode versuchsperson proband teilnehmer case recordid sujet sujeto who session"
)
_PEOPLE = (  # with and without a word for a number
    "participant subject worker respondent rater annotator proband probanden versuchsperson versuchspersonen "
    "vp vpn pbn ppt ppn pp participante sujet sujeto participants repondant deelnemer proefpersoon prolific sona mturk "
    "teilnehmer teilnehmerin panelist subj sub studysubject labeler labeller turker student child kind befragter "
    "befragte probandin nutzer participante sujet personne utilisateur juge encuestado usuario persona juez evaluador "
    "pessoa sujeito respondente utilizador avaliador voluntario "
    "partecipante soggetto rispondente utente giudice valutatore "
    "persoon gebruiker beoordelaar deltagare forsoksperson anvandare deltager forsogsperson bruger deltaker bruker "
    "osallistuja henkilo koehenkilo vastaaja uczestnik uczestniczka badany badana osoba uzytkownik ucastnik uzivatel "
    "resztvevo szemely valaszado kitolto persoana subiect utilizator katilimci kisi denek kullanici peserta responden "
    "partisipan участник участница испытуемый испытуемая респондент пользователь учасник учасниця користувач "
    "досліджуваний συμμετεχων συμμετεχουσα נבדק משתתף مشارك المشارك مستجيب 参与者 参加者 被试 被试者 受试者 用户 "
    "參與者 受試者 被験者 回答者 評価者 참가자 참여자 피험자 응답자 प्रतिभागी"
)
_NUMBERS = (
    "id",
    "nr",
    "no",
    "num",
    "number",
    "code",
    "pid",
    "name",
    "nummer",
    "kurzel",
    "numero",
    "编号",
    "番号",
    "번호",
)
PARTICIPANTS = tuple(  # the likeliest first, as `in_one_word` writes them
    dict.fromkeys(
        in_one_word(name)
        for name in (
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
