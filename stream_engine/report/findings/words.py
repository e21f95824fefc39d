"""Numbers and lists in sentences."""

from typing import Any


def count(n: float) -> str:
    """A whole number with its thousands apart.

    >>> count(12502)
    '12,502'
    """
    return f"{int(n):,}"


def percent(share: float | None, digits: int = 1) -> str:
    """A share in per cent; "unknown" where it is None.

    >>> percent(0.8437), percent(None), percent(1e-5)
    ('84.4 %', 'unknown', '< 0.1 %')
    """
    if share and 100.0 * share < 0.5 * 10.0**-digits:
        return f"< {10.0**-digits:.{digits}f} %"
    return "unknown" if share is None else f"{100.0 * share:.{digits}f} %"


def three_decimals(value: float) -> str:
    """A share beside its per cent, both rounded at the same place.

    >>> f"{0.7575:.3f}", percent(0.7575), three_decimals(0.7575)
    ('0.757', '75.8 %', '0.758')
    """
    return f"{float(f'{100.0 * value:.1f}') / 100.0:.3f}"


def p_value(p: float) -> str:
    """A p-value in APA style.

    >>> p_value(0.0123)
    '.012'
    """
    return f"{p:.2g}".removeprefix("0")


def apa_p_value(p: float) -> str:
    """A p-value with its sign, and a bound where it is near 0 or 1.

    >>> apa_p_value(0.0004), apa_p_value(0.03), apa_p_value(0.999)
    ('p < .001', 'p = .03', 'p > .99')
    """
    return "p < .001" if p < 0.001 else "p > .99" if p > 0.99 else f"p = {p_value(p)}"


def listing(texts: list[str], most: int = 5) -> str:
    """The first texts, and the number of the others.

    >>> listing(["a", "b", "c"]), listing(list("abcdefg"), 3)
    ('a, b and c', 'a, b, c and 4 more')
    """
    if len(texts) > most:
        return f"{', '.join(texts[:most])} and {len(texts) - most} more"
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def cell(value: Any) -> str:
    """A table's cell: three digits behind the point where the number is small, an empty text for None.

    >>> cell(0.84367), cell(0.7575), cell(1234), cell(None), cell(56789.5), cell("a")
    ('0.844', '0.758', '1,234', '', '56,790', 'a')
    """
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return (
            f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2g}" if abs(value) < 0.001 else three_decimals(value)
        )
    return f"{value:,}" if isinstance(value, int) else str(value)
