"""Numbers with their nouns, for messages."""


def amount(n: float, noun: str, nouns: str = "") -> str:
    """A whole number with its thousands apart, and its noun.

    >>> amount(1, "object"), amount(12502, "object"), amount(2, "category", "categories")
    ('1 object', '12,502 objects', '2 categories')
    """
    return f"{int(n):,} {noun if n == 1 else nouns or f'{noun}s'}"
