"""Whether participants differ in how much the axes of the map count for them, and whether they form groups."""

from collections.abc import Iterator, Mapping

from stream_engine.report.findings import GAP, Finding
from stream_engine.report.findings.agreement import FEWEST
from stream_engine.report.findings.facts import Facts
from stream_engine.report.findings.words import p_value, percent, some
from stream_engine.state.artifact import figure


def differences(facts: Facts) -> Iterator[Finding]:
    """The result of the test of one map against weights of participants, and groups of participants."""
    report = facts.report("embedding").get("individual_differences")
    if not isinstance(report, Mapping) or facts.beats_chance is False:
        return
    people, gain, error, p = (figure(report, name) for name in ("participants", "gain", "standard_error", "p_value"))
    if people is None or gain is None or error is None or p is None:
        if people and people > 1:
            text = f"Individual differences were not tested: {report.get('verdict')}."
            yield Finding("differences_untested", text, level=GAP)
        return
    figures = {"participants": people, "gain": gain, "standard_error": error, "p_value": p}
    test = f"gain in log loss {gain:.3f}, SE {error:.3f}; p {'< .001' if p < 0.001 else '= ' + p_value(p)}"
    if figure(report, "shrinkage") is None:
        text = f"No individual differences were found between {some(int(people), 'participant')}: weights of their own "
        yield Finding(
            "no_differences", text + f"do not predict held-out answers better than one map ({test}).", figures
        )
        return
    how = "how sharply they distinguish" if report.get("slopes") else "how much each axis counts for them"
    text = f"Participants differ in {how} ({test}; {some(int(people), 'participant')})."
    own, one = figure(report, "weights", "accuracy"), figure(report, "one_map", "accuracy")
    if own is not None and one is not None:
        own_what = "slopes" if report.get("slopes") else "weights"
        text += f" With {own_what} of their own, {percent(own)} of their held-out answers are predicted correctly; "
        text += f"with one map for everybody, {percent(one)}."
    yield Finding("differences", text, figures | {"accuracy": own, "accuracy_of_one_map": one})
    groups, groups_p = figure(report, "groups", "count"), figure(report, "groups", "p_value")
    if groups is not None and groups_p is not None and people >= FEWEST:
        text = (
            f"Participants form {int(groups)} groups" if groups > 1 else "No separate groups of participants were found"
        )
        yield Finding(
            "participant_groups", f"{text} (p = {p_value(groups_p)}).", {"groups": groups, "p_value": groups_p}
        )
