"""The page of alerts: every rule of `deploy/prometheus/alerts.yml`, which is a part of the checkout only."""

import re
from pathlib import Path
from textwrap import wrap

from deploy.manual.markdown import MADE, WIDTH, item

RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yml"
INTRODUCTION = f"""# Alerts

{MADE}

The rules of `deploy/prometheus/alerts.yml` and their conditions. [The runbook](../runbook.md) says what to do.
"""
_RULE = re.compile(
    r"- alert: (?P<name>\w+)\n\s+expr: (?P<expr>.*?)\n(?:\s+for: (?P<lasts>\w+)\n)?"
    r"\s+labels: \{severity: (?P<severity>\w+)\}\n\s+annotations:\n\s+summary: .*?\n"
    r"\s+description: \"(?P<says>.*?)\"\n",
    re.S,
)


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION]
    for rule in rules():
        lasts = f", for {rule['lasts']}" if rule["lasts"] else ""
        anchor = rule["name"].lower()
        lines += [f"## {rule['name']}", "", item(f"{rule['severity']}{lasts}: {rule['says']}"), ""]
        lines += ["```text", *_expression(rule["expr"]), "```", "", f"[What to do](../runbook.md#{anchor})", ""]
    return "\n".join(lines)


def _expression(text: str) -> list[str]:
    return wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def rules() -> list[dict[str, str]]:
    """Every rule: name, expr, lasts, severity, says."""
    return [found.groupdict(default="") for found in _RULE.finditer(RULES.read_text(encoding="utf-8"))]
