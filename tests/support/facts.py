"""Assertions on texts for people: the facts in a message, never its wording.

A fact is what a reader acts on: a number, a name, a path, an option, a field, a setting. Facts are written with " … "
between them, which stands for any words.
"""

import re


def states(text: str, facts: str) -> bool:
    """Whether a text has these facts, in this order.

    >>> states("similarity: not a square matrix, got shape (2, 3)", "similarity: … (2, 3)")
    True
    >>> states("similarity: got (3, 2)", "(2, 3)")
    False
    """
    return re.search(stating(facts), text, re.DOTALL) is not None


def stating(facts: str) -> str:
    """The same as a pattern, for `pytest.raises(match=...)`.

    >>> stating("(2, 3) … W")
    '\\\\(2,\\\\ 3\\\\).*W'
    """
    return ".*".join(re.escape(each) for each in facts.split(" … "))
