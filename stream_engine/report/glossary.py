"""Terms of the page that not every reader knows, each explained where it first stands."""

import re

from markupsafe import Markup, escape

TERMS = {  # term, as a regular expression -> what it means
    "ARI|adjusted Rand index": "Adjusted Rand index, agreement of two partitions: 1 the same, 0 as by chance.",
    "AddS-[34]": "Similarity of two objects, added up from the answers without a map.",
    "SPUR": "Criterion for the number of clusters (Perrot et al. 2020).",
    "continua|continuum": "Objects spread without gaps between groups.",
    "held-out": "Not used when the model was fitted.",
    "lapse rates?": "Estimated share of answers that do not follow the map: random ones, or by another view.",
    "nats": "Unit of log loss: 0.693 for a random answer between two objects, 0 for a certain prediction.",
    "noise ceiling": "Accuracy that no model can exceed which predicts the same for all participants; estimated "
    "from how often two participants give the same answer to a question.",
    "score test": "Test whether participants differ, which needs only the fit of one map for all.",
    "trustworthiness": "1: objects that are neighbours in the picture are neighbours in all dimensions, too.",
    "t-STE": "t-distributed stochastic triplet embedding: places objects so that the answers become likely.",
}
_ANY = re.compile("|".join(rf"(?P<t{number}>\b(?:{term})\b)" for number, term in enumerate(TERMS)), re.IGNORECASE)
_MEANINGS = tuple(TERMS.values())


class Glossary:
    """The terms of one page that are still to be explained."""

    def __init__(self) -> None:
        self._explained = set[str]()

    def __call__(self, text: str) -> Markup:
        """The text as HTML, with the meaning of each term where it comes first on the page.

        >>> explain = Glossary()
        >>> explain("SPUR < SPUR").striptags()
        'SPUR < SPUR'
        >>> explain("SPUR")
        Markup('SPUR')
        """
        parts, end = [], 0
        for match in _ANY.finditer(text):
            group = str(match.lastgroup)
            if group not in self._explained:
                self._explained.add(group)
                meaning = _MEANINGS[int(group[1:])]
                parts.append(escape(text[end : match.start()]))
                parts.append(Markup('<abbr title="{}" tabindex="0">{}</abbr>').format(meaning, match[0]))
                end = match.end()
        return Markup("").join([*parts, escape(text[end:])])
