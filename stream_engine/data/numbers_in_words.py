"""Numbers with their nouns, for messages."""


def number_of(n: float, noun: str, nouns: str = "") -> str:
    """A whole number with its thousands apart, and its noun.

    >>> number_of(1, "object"), number_of(12502, "object"), number_of(2, "category", "categories")
    ('1 object', '12,502 objects', '2 categories')
    """
    return f"{int(n):,} {noun if n == 1 else nouns or f'{noun}s'}"
