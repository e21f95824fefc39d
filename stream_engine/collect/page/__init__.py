"""The participant's page: what the server says of the study, in HTML without a line of script; `ask.js` does the rest.

No request leaves the site, addresses are relative (a proxy may put a prefix before them), and the policy allows nothing
that is not a file of this site.
"""

from importlib.resources import files
from typing import Any

import jinja2
import msgspec

from stream_engine.collect.study import Study

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
TITLE = "Which is more alike?"
INSTRUCTIONS = (
    "You will see a few things at a time. There is no right or wrong answer: go by your first impression. Click, tap, "
    "or press the number of your choice."
)
END = "That was all. Thank you!"
EXCLUDED = "Thank you. You will not be asked any more questions."


def question(study: Study) -> str:
    """What is asked above the choices."""
    asking = study.asking
    if study.texts.question:
        return study.texts.question
    if asking.type == "odd_one_out":
        return "Which one is least like the others?"
    if asking.choose > 1:
        return f"Which {asking.choose} are most like the one above?"
    return "Which one is most like the one above?" if asking.shown > 2 else "Which one is more like the one above?"


def page(study: Study, key: str) -> str:
    """The whole page. `key` tells this study from others on the same host."""
    texts = study.texts
    told: dict[str, Any] = {
        "study": key,
        "type": study.asking.type,
        "workerFrom": study.access.worker_from,
        "question": question(study),
        "link": texts.link,
    }
    source = (files("stream_engine.collect.page") / "ask.html").read_text("utf-8")
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(source)
    return template.render(
        told=msgspec.json.encode(told).decode(),
        language=texts.language,
        title=texts.title or TITLE,
        consent=_paragraphs(texts.consent),
        instructions=_paragraphs(texts.instructions or INSTRUCTIONS),
        end=_paragraphs(texts.end or END),
        excluded=_paragraphs(texts.excluded or EXCLUDED),
        link=texts.link,
    )


def _paragraphs(text: str) -> list[str]:
    """Texts are plain: an empty line begins a paragraph.

    >>> _paragraphs("a\\n\\nb")
    ['a', 'b']
    """
    return [part.strip() for part in text.split("\n\n") if part.strip()]
