"""The participant's page: what the server says of the study, in HTML without a line of script; `ask.js` does the rest.

No request leaves the site, addresses are relative (a proxy may put a prefix before them), and the policy allows nothing
that is not a file of this site.
"""

from importlib.resources import files
from typing import Any

import jinja2
import msgspec

from stream_engine.collect.page.words import ENGLISH, Words, words_of
from stream_engine.collect.study import Study

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
WORDS_OF_SCRIPT = (
    "far",
    "anchor",
    "choice",
    "choose",
    "please_choose",
    "sound",
    "no_connection",
    "closed",
    "stranger",
    "refused",
    "copied",
)


def question(study: Study, words: Words) -> str:
    """What is asked above the choices."""
    asking = study.asking
    if study.texts.question:
        return study.texts.question
    if asking.type == "odd_one_out":
        return words.odd_one_out
    if asking.choose > 1:
        return words.several.replace("{n}", str(asking.choose))
    return words.most_like if asking.shown > 2 else words.more_like


def page(study: Study, key: str, words: Words | None = None, fill: float = 1.0, largest: int = 1) -> str:
    """The whole page. `key` tells this study from others on the same host; `fill` and `largest` say how large pictures
    are shown, see `Stimuli`."""
    words = words or words_of(study.texts.language)
    texts = study.texts
    settings: dict[str, Any] = {
        "study": key,
        "type": study.asking.type,
        "workerFrom": study.access.worker_from,
        "question": question(study, words),
        "link": texts.link,
        "pictures": {"size": study.asking.picture_size, "fill": fill, "largest": largest},
        "words": {name: getattr(words, name) for name in WORDS_OF_SCRIPT},
    }
    source = (files("stream_engine.collect.page") / "ask.html").read_text("utf-8")
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(source)
    return template.render(
        told=msgspec.json.encode(settings).decode(),
        words=words,
        language=texts.language if texts.language != ENGLISH else words.language,
        title=texts.title or words.title,
        consent=_paragraphs(texts.consent),
        instructions=_paragraphs(texts.instructions or words.instructions),
        end=_paragraphs(texts.end or words.end),
        excluded=_paragraphs(texts.excluded or words.excluded),
        link=texts.link,
    )


def _paragraphs(text: str) -> list[str]:
    """Texts are plain: an empty line begins a paragraph.

    >>> _paragraphs("a\\n\\nb")
    ['a', 'b']
    """
    return [part.strip() for part in text.split("\n\n") if part.strip()]
