"""Which rows are not to be used, as other columns say: excluded, rejected, not finished, timed out."""

import re
from collections import Counter
from collections.abc import Sequence

from stream_engine.formats.cells import LIST_SEPARATOR
from stream_engine.formats.field_values import flag_of
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.trial_filters import (
    CATCH_WORDS,
    FAILED,
    MAX_RECORD_KINDS,
    OTHER_TRIAL,
    PASSED,
    RECORD_KIND_WORDS,
    RESULTS,
    Filters,
    catch_marks,
    is_boolean,
    is_practice,
    is_preview,
)
from stream_engine.formats.vocabulary import words_of

_ABOUT = set(
    words_of(
        "is was be should to from in for of the trial trials row response answer participant subject worker user case "
        "record submission assignment analysis analyses data session survey task hit"
    )
)  # words of a name that do not change what it says of a row
_REASON = {"reason", "reasons", "note", "notes", "comment", "comments", "why", "grund", "code"}
_LEAVE_OUT = set(
    words_of(
        "invalid exclude excluded exclusion reject rejected rejection discard discarded omit omitted ignore ignored "
        "remove removed drop dropped disqualified withdrawn bot cancelled canceled skipped "
        "ausschluss ausgeschlossen ausschliessen ungultig exclu "
        "exclus exclure excluido excluida excluir uitgesloten uitsluiten"
    )
)
_KEEP = set(
    words_of(
        "valid include included keep kept usable approve approved accepted consent consented einschluss gultig valide "
        "incluir incluido geldig"
    )
)
_COMPLETE = set(words_of("finished finish complete completed done beendet fertig abgeschlossen termine terminado"))
_ENDED = {"submitdate", "ended", "at", "date", "time", "timestamp", "on", "submitted"}  # when: LimeSurvey, formr
_TESTED = {"attention", "comprehension", "manipulation", "captcha", "instructional", "imc", "catch", "check", "quality"}
_AGENTS = {"agent", "source", "role", "origin", "by"}  # of an answer
_PEOPLE = {"rater", "annotator", "respondent", "participant", "subject", "worker", "user", "responder"}
_MACHINE = re.compile(  # that answered, not a person
    r"(?:.* )?(?:gpt|chatgpt|claude|llama|gemini|gemma|mistral|mixtral|deepseek|qwen|llm|ai|ki|bot|model|modell|machine"
    r"|algorithm|synthetic|simulated|simulation)(?: .*)?"
)
_MODES = {"mode", "channel", "probe"}  # of columns that say how a record came about
_TRIED = {"admin", "pretest", "debug", "preview", "test", "tester", "survey preview", "survey test"}
_BAD_STATUS = {  # of a submission or its participant: Prolific, Mechanical Turk, Qualtrics, panels
    *("rejected", "returned", "timed out", "timedout", "timeout", "screened out", "abandoned", "expired", "withdrawn"),
    *("revoked", "disqualified", "spam", "survey preview", "survey test", "excluded", "exclude", "invalid", "deleted"),
    *("cancelled", "canceled", "discarded", "abgelehnt", "ungultig", "bot", "fraud", "duplicate"),
}
_OPEN_STATUS = {"partial", "incomplete", "in progress", "unfinished", "started", "quit", "terminated", "abgebrochen"}
_GOOD_STATUS = {
    *("approved", "accepted", "submitted", "awaiting review", "completed", "complete", "finished", "active", "valid"),
    *("ip adresse", "adresse ip", "direccion ip", "ip adres", "indirizzo ip", "endereco ip"),
    *("ok", "ip address", "imported", "included", "paid", "reviewed", "pending", "done", "reserved", "responded"),
}


_KINDS = set(words_of("fase etapa etape tipo bloque taak tache soort onderdeel"))
_BROKEN_OFF = {  # of a session: somebody stopped
    *("aborted", "abandonada", "abandonado", "abandonne", "abandonnee", "abgebrochen", "afgebroken", "unterbrochen"),
    *("interrumpida", "interrumpido", "interrompu", "interrompue", "interrotta", "interrotto", "gestaakt"),
}
_TIMED_OUT = {
    *("timeout", "timedout", "tooslow", "toolate", "tempsdepasse", "tempsecoule", "delaidepasse"),
    *("troplent", "zulangsam", "zuspat", "zeituberschreitung", "zeitabgelaufen", "telaat", "tetraag"),
    *("tiempoagotado", "demasiadolento", "fueradetiempo", "tempscaduto", "temposcaduto", "noresponse"),
}


def _timed_out(words: Sequence[str]) -> bool:
    """Whether a column that is called so says that time was over."""
    return "".join(word for word in words if word not in _ABOUT and word != "has") in _TIMED_OUT


def unusable(records: Records, used: Sequence[str]) -> tuple[list[Filters], list[Filters]]:
    """Filters by columns that mark rows as not to be used: of marks that say so for certain (`exclude`, `valid`, a
    submission that was rejected), and of marks that leave it open (not finished, an attention check that was failed).

    >>> from stream_engine.formats.record_columns import records_of
    >>> marks = {"is_valid": ["1", "0", "1"], "Finished": ["True", "True", "False"], "status": ["ok", "ok", "single"]}
    >>> [[filters.where for filters in some] for some in unusable(records_of(marks), [])]
    [[{'is_valid!=': '0'}], [{'Finished!=': 'False'}]]
    """
    certain, open_marks = list[Filters](), list[Filters]()
    for name, column in records.columns.items():
        if name in used or not column.distinct or set(name) & set(",|="):
            continue
        sure, marks = _marks_of(column)
        if not marks or sum(text in marks for text in column.texts) in (0, records.size):
            continue
        texts = sorted(text or "" for text in marks)
        if len(marks) > MAX_RECORD_KINDS or LIST_SEPARATOR in "".join(texts):
            open_marks.append(Filters("marked rows", {}, f"{name} is filled"))
            continue
        shown = ", ".join(text or "empty" for text in texts[:5])
        filters = Filters("invalid trials", {f"{name}!=": LIST_SEPARATOR.join(texts)}, f"{name} is {shown}")
        (certain if sure else open_marks).append(filters)
    return certain, open_marks


def is_mark(column: Column) -> bool:
    """Whether some value of a column says that a row is not to be used."""
    return bool(_marks_of(column)[1])


def may_mark(name: str) -> bool:
    """Whether a column that is called so may say that a row is practice, or not to be used."""
    words = {*words_of(name)}
    names = (
        RECORD_KIND_WORDS
        | CATCH_WORDS
        | _LEAVE_OUT
        | _KEEP
        | _COMPLETE
        | _TESTED
        | _MODES
        | {"training", "submitdate"}
        | _AGENTS
        | {"kind", "human", "ai", "llm", "synthetic", "simulated"}
        | _KINDS
        | {"sesion", "sitzung", "sessie", "session", "estado", "statut", "zustand"}
    )
    return _timed_out(words_of(name)) or bool(names & words) or is_practice(name, True)


def marks(name: str, text: str) -> bool:
    """Whether a text in a column that is called so may say that a row is practice, or not to be used.

    >>> marks("status", "REJECTED"), marks("phase", "practice"), marks("exclude", "0"), marks("is_practice", "1")
    (True, True, False, True)
    """
    column = Column(name, [(text,) if text else None])
    if flag_of(text) and is_practice(name, True):
        return True
    return bool(text) and (is_practice(text, True) or bool(_marks_of(column)[1] or catch_marks(column)))


def _marks_of(column: Column) -> tuple[bool, set[str | None]]:
    """The values of a column that mark rows as not to be used, and whether they say so for certain; None: no value."""
    words = {*words_of(column.name.rpartition(".")[2])} - _ABOUT
    folded = {text: "survey preview" if is_preview(text) else " ".join(words_of(text)) for text in column.distinct}

    def having(texts: set[str]) -> set[str | None]:
        return {text for text, plain in folded.items() if plain in texts}

    def flagged(flag: bool) -> set[str | None]:
        return {text for text in column.distinct if flag_of(text) == flag}

    if broken_off := having(_BROKEN_OFF):
        return False, broken_off
    if _timed_out(column.words) and is_boolean(column):
        return False, flagged(True)
    if "interview" in folded.values() and "mode" in words:  # SoSci
        return True, {text for text, plain in folded.items() if plain in _TRIED}
    if "channel" in words and (tried := having(_TRIED)):  # Qualtrics
        return True, tried
    if (
        words
        and words <= {"quality", "check", "flag"}
        and {*folded.values()}
        <= {
            *(_BAD_STATUS | FAILED | _GOOD_STATUS | PASSED),
            "human",
        }
    ):
        return False, having(_BAD_STATUS | FAILED)
    if "probe" in words and is_boolean(column):  # German: a trial for practice
        return False, flagged(True)
    if column.words[-1:] in (("block",), ("round",), ("trial",)) and "0" in column.distinct:
        counts = Counter(column.texts)
        return False, {"0"} if 2 * counts["0"] < min(
            (n for text, n in counts.items() if text != "0"), default=0
        ) else set()
    is_kind = (RECORD_KIND_WORDS | _KINDS) & {*column.words} and len(column.distinct) <= MAX_RECORD_KINDS
    if is_kind and any(map(OTHER_TRIAL.fullmatch, column.distinct)):
        return False, {text for text in column.distinct if OTHER_TRIAL.fullmatch(text)}
    machines = {text for text, plain in folded.items() if _MACHINE.fullmatch(plain)}
    is_agent = _AGENTS & {*column.words} or (_PEOPLE & {*column.words} and {"type", "kind"} & {*column.words})
    if machines and is_agent and len(folded) <= MAX_RECORD_KINDS:
        return False, {*machines} if machines < column.distinct else set()
    if words and words <= {"human", "ai", "llm", "synthetic", "simulated"} and is_boolean(column):
        return False, flagged("human" not in words)
    if "status" in words and {*folded.values()} <= _BAD_STATUS | _OPEN_STATUS | _GOOD_STATUS:
        return (True, bad) if (bad := having(_BAD_STATUS)) else (False, having(_OPEN_STATUS))
    if column.words[-1:] == ("complete",) and "2" in column.distinct <= {"0", "1", "2"}:  # a form of REDCap
        return False, having({"0"})
    if not words:
        return False, set()
    if words <= _LEAVE_OUT | _REASON and _LEAVE_OUT & words:
        if is_boolean(column):
            return True, flagged(True)
        texts = {text for text in column.distinct if flag_of(text) is not False and not text.isdecimal()}
        return words == {"reject"}, {*texts}  # Mechanical Turk: why it was rejected
    if words <= _KEEP | _COMPLETE:
        if is_boolean(column):
            return (words <= _KEEP, false) if (false := flagged(False)) else (False, {None})
        return False, having(_OPEN_STATUS) or ({None} if words <= _COMPLETE else set())
    if _TESTED & words and (RESULTS | CATCH_WORDS | FAILED) & words:
        if not is_boolean(column):
            return False, having(FAILED) if {*folded.values()} <= FAILED | PASSED else set()
        return False, flagged(bool(FAILED & words)) if (RESULTS | FAILED) & words else set()
    return False, {None} if words <= _COMPLETE | _ENDED and (_COMPLETE | {"submitdate", "ended"}) & words else set()
