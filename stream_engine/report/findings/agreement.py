"""Inter-rater and test-retest agreement, conflicting answers, and what the partial order drops.

How many participants were checked and flagged (see `evaluation.participants`); whether participants differ in how much
the axes of the map count for them, and whether they form groups.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from math import sqrt
from typing import Any

import numpy as np

from stream_engine.data.numbers_in_words import amount
from stream_engine.evaluation.noise_ceiling import MIN_CEILING_ANSWERS
from stream_engine.evaluation.participants import MIN_PARTICIPANTS, ParticipantChecks
from stream_engine.report.findings import GAP, WARNING, Finding
from stream_engine.report.findings.data import included_again
from stream_engine.report.findings.facts import Facts
from stream_engine.report.findings.words import apa_p_value, count, listing, p_value, percent
from stream_engine.state.artifact import figure
from stream_engine.state.snapshot import triplet_columns

SCORE_LEVEL, WEIGHTS_LEVEL = 0.05, 0.01  # of the tests of individual differences, as in `embedding.differences`
SMALL_DIFFERENCE = 0.005  # of the accuracy, below which differences between participants are called small
MIN_CERTAIN_REPEATS = 60  # somebody who repeats 95 % of their answers changes one of so many almost surely
MANY_OF_ALL, TIMES_EQUAL = 0.3, 3.0  # share of all answers of one participant, also in terms of an equal share
MANY_COPIES = 0.25  # of what a figure rests on, from which it is not said


def participants(facts: Facts) -> Iterator[Finding]:
    """How many participants were checked and flagged; names are shown only on request."""
    checks = facts.participants
    if checks is None and facts.published.excluded:
        text = "All named participants are excluded, so guessing cannot be assessed."
        text, figures, command = included_again(text, facts.published.excluded, facts.commands, {})
        yield Finding("participants_unknown", text, figures, command, GAP)
        return
    if checks is None:
        if facts.summary["comparisons"]:
            text = "There is no participant column, so guessing cannot be assessed."
            yield Finding("participants_unknown", text, level=GAP, command=facts.preview)
        return
    people = len(checks.names)
    figures = {"participants": people, "flagged": checks.flagged}
    if people < MIN_PARTICIPANTS:
        yield Finding(
            "participants",
            f"{amount(people, 'participant')} answered, too few to compare with each other.",
            {"participants": people},
        )
        return
    if again := _copies(facts):
        text = f"{amount(again, 'answer was', 'answers were')} recorded more than once, by the same participant at the "
        yield Finding("duplicates", f"{text}same time.", {"answers": again}, level=WARNING)
    most = checks.responses.max() / max(checks.responses.sum(), 1)
    if most > max(MANY_OF_ALL, TIMES_EQUAL / people):
        text = f"One of {count(people)} participants gave {percent(most)} of the answers: the map, its accuracy and "
        text += "agreement rest on that participant more than on any other."
        yield Finding("one_participant", text, {"share": float(most)}, level=WARNING)
    judged, of_own_view = int(checks.tested.sum()), own_view(facts, checks)
    if facts.beats_chance is False and not checks.flagged:
        text = "Individual participants cannot be assessed, because "
        text += f"{facts.at_chance} the answers better than chance."
        yield Finding("participants_gated", text, {"participants": people})
    elif checks.flagged:
        share = percent(checks.flagged / people, 0)
        were = "was" if checks.flagged == 1 else "were"
        text = f"{count(checks.flagged)} of {amount(people, 'participant')} ({share}) {were} flagged: "
        text += f"{_why(checks.reasons)}."
        command = "" if facts.commands.lists_participants else f"{facts.commands.report} --participants"
        yield Finding("participants_flagged", text + _power(checks) + of_own_view, figures, command, WARNING)
        yield from _weaker_check(facts)
    else:
        text = (
            f"No participant was flagged as guessing ({count(judged)} of {count(people)} gave enough answers to be "
            "checked)."
        )
        yield Finding("participants", text + _power(checks) + of_own_view, figures | {"checked": judged})
        yield from _weaker_check(facts)


def own_view(facts: Facts, checks: ParticipantChecks) -> str:
    """That some answer unlike all others and yet do not guess; their names where participants are listed."""
    names = [name for name, consistent in zip(checks.names, checks.consistent.tolist()) if consistent]
    if not names:
        return ""
    who = listing(names) if facts.commands.lists else amount(len(names), "participant")
    disagree, they = ("disagrees", "this participant") if len(names) == 1 else ("disagree", "them")
    differences_report = facts.report("embedding").get("individual_differences") or {}
    see = "see Who sees it differently; " if differences_report.get("who") else ""
    return f" {who} {disagree} with the others, but consistently: {see}do not exclude {they} for guessing."


def _copies(facts: Facts) -> int:
    """Answers that were recorded again at the same time by the same participant."""
    return 0 if facts.participants is None else int(facts.participants.responding.duplicates.sum())


def most_of_repeated_answers(facts: Facts) -> float | None:
    """The share of the answers to questions that a participant answered again which one participant gave; None where
    it is less than one half."""
    votes = facts.published.snapshot.section("worker_votes")
    if not votes:
        return None
    n = np.asarray(votes["n_lo"], np.int64) + np.asarray(votes["n_hi"], np.int64)
    again = np.bincount(np.asarray(votes["worker"], np.int64)[n > 1], n[n > 1])
    return float(again.max() / again.sum()) if len(again) > 1 and 2 * again.max() >= again.sum() > 0 else None


def says_how_often_again(facts: Facts) -> bool:
    """Whether test-retest agreement is known and does not rest on copies, each of which makes two answers."""
    themselves, answers = (figure(facts.ceiling, name) for name in ("themselves", "own_answers"))
    copies = max(facts.copies_counted, _copies(facts))
    if themselves is None or (facts.copies_counted and themselves == 1.0):
        return False
    return not copies or 2 * copies < MANY_COPIES * (answers or 0)


def _weaker_check(facts: Facts) -> Iterator[Finding]:
    """That an embedding would notice more of those who guess, where there is none."""
    if "embedding" in facts.published.artifacts:
        return
    text = (
        "Participants were checked by counts of answers alone, which is the weaker check: with an embedding, more of "
    )
    text += f"those who only guess are noticed. {facts.commands.awaited}"
    yield Finding("weaker_check", text.strip(), level=GAP, command=facts.commands.refit("embedding"))


def _power(checks: ParticipantChecks) -> str:
    """How many guessers the comparison with others would notice."""
    if checks.power is None or checks.power_range is None:
        return ""
    share, least, most = map(_bounded, (checks.power, *checks.power_range))
    about = share if share.startswith(("less", "more")) else f"about {share}"
    checked = f"calculated from the answers of the {count(checks.tested.sum())} who were checked"
    each = f": {least} to {most}" if least != most else ""
    return f" Of participants who only guess, {about} would be noticed by their accuracy ({checked}{each})."


def _bounded(share: float) -> str:
    """A share in per cent that is not certain: never 0 % or 100 %.

    >>> _bounded(0.9999), _bounded(0.98), _bounded(0.001)
    ('more than 99 %', '98 %', 'less than 1 %')
    """
    return "more than 99 %" if share >= 0.995 else "less than 1 %" if share < 0.005 else percent(share, 0)


def _why(reasons: tuple[str, ...]) -> str:
    """The kinds of reasons, those of one participant together, each with the number of participants: the numbers add
    up to those who are flagged. A lapse rate says the same as answers at chance level, and is not named beside it.

    >>> _why(("answers at chance level (others predict 50%); lapse rate 0.90", "", "lapse rate 0.70"))
    'answers at chance level (1); mostly random answers (1)'
    >>> _why(("answers at chance level (others predict 50%); straight-lining: 40 in a row",))
    'answers at chance level and straight-lining (1 participant with both)'
    """
    kinds = {
        "at chance level": "answers at chance level",
        "below chance level": "answers below chance level",
        "the other way round": "answers mostly the other way round",
        "catch trials": "failed catch trials",
        "lapse rate": "mostly random answers",
        "at position": "mostly one position chosen",
        "in a row": "straight-lining",
        "within": "answers faster than 300 ms",
    }
    people: Counter[tuple[str, ...]] = Counter()
    for reason in filter(None, reasons):
        why = [text for key, text in kinds.items() if key in reason]
        if kinds["lapse rate"] in why and {kinds["at chance level"], kinds["below chance level"]} & {*why}:
            why.remove(kinds["lapse rate"])
        people[tuple(why)] += 1
    ordered = sorted(people.items(), key=lambda each: [*kinds.values()].index(each[0][0]) if each[0] else len(kinds))
    each = {0: "", 1: "", 2: " with both"}
    return "; ".join(
        f"{listing(list(why))} ({amount(n, 'participant') if len(why) > 1 else count(n)}"
        f"{each.get(len(why), ' with all of these')})"
        for why, n in ordered
    )


_AMONG = "copies of answers are counted, and cannot be told from repetitions"


def is_below_chance(share: float | None, answers: float | None) -> bool:
    """Whether so many answers are known to agree less than by chance (one-sided test at the .5 % level). Two answers to
    a question agree both or neither, so that there are half as many independent ones.

    >>> is_below_chance(0.3, 100), is_below_chance(0.45, 100), is_below_chance(None, 100)
    (True, False, False)
    """
    return share is not None and answers is not None and share + 2.58 * sqrt(0.5 / max(answers, 1.0)) < 0.5


def _opposite_answers(facts: Facts) -> Iterator[Finding]:
    """Warnings where answers to the same question are opposite more often than by chance, as after an instruction that
    was reversed for some participants, or between sessions. Of participants, `models.accuracy` says it where no model
    predicts."""
    others, themselves, answers, again = (
        figure(facts.ceiling, name) for name in ("others", "themselves", "answers", "own_answers")
    )
    if is_below_chance(others, answers) and facts.beats_chance is not False:
        text = f"Participants contradict each other more often than by chance: {percent(others)} of answers match the "
        text += "majority of the others'. Was the instruction the same for all participants and files?"
        yield Finding("opposite_participants", text, {"share": others}, facts.preview, WARNING)
    if is_below_chance(themselves, again):
        text = "Participants contradict their own answers more often than by chance when a question is asked again: "
        text += f"{percent(themselves)} are the same. Was the instruction the same in all sessions and files?"
        yield Finding("opposite_repeats", text, {"share": themselves}, facts.preview, WARNING)


def agreement(facts: Facts) -> Iterator[Finding]:
    """Inter-rater and test-retest agreement, and conflicting answers."""
    summary, ceiling = facts.summary, facts.ceiling
    if not summary["comparisons"]:
        return
    others, themselves, answers = (figure(ceiling, name) for name in ("others", "themselves", "answers"))
    if others is not None:
        text = "Inter-rater agreement: an answer matches the majority of the other answers to the same question in "
        notes = [f"{count(answers)} comparisons"] if answers else []
        notes += [facts.who_counts_too] if facts.who_counts_too else []
        text += f"{percent(others)}" + (f" ({'; '.join(notes)})." if notes else ".")
        if facts.beats_chance and facts.best and facts.best["accuracy"] > others:
            text += " A model can predict more, because it combines the answers to many questions."
        yield Finding("inter_rater_agreement", text, {"share": others, "answers": answers})
    elif facts.published.artifacts and not any("ceiling" in each.report for each in facts.published.artifacts.values()):
        text = f"Inter-rater agreement is computed with the embedding. {facts.commands.awaited}".strip()
        yield Finding("agreement_unknown", text, level=GAP, command=facts.commands.refit("embedding"))
    elif facts.published.artifacts:
        n = int(answers or 0)
        text = f"Inter-rater agreement and noise ceiling are unknown: {amount(n, 'answer is', 'answers are')} to a "
        text += f"question that somebody else answered, too, and {MIN_CEILING_ANSWERS} are needed. Ask several "
        text += "participants the same questions."
        yield Finding("agreement_unknown", text, level=GAP)
    yield from _opposite_answers(facts)
    copies = max(facts.copies_counted, _copies(facts))
    if themselves is not None:
        again = figure(ceiling, "own_answers")
        if not facts.copies_counted and themselves == 1.0 and again is not None and again >= MIN_CERTAIN_REPEATS:
            text = f"All {count(again)} answers to questions that a participant answered more than once are the same: "
            text += "rows may be in the data twice. Remove copies and read the data again; every figure counts them."
            yield Finding("only_same_answers", text, {"answers": again}, level=WARNING)
        elif not says_how_often_again(facts):
            text = "Test-retest agreement is not reported: "
            yield Finding("test_retest_unknown", f"{text}{_AMONG}.", level=GAP)
        else:
            text = "Test-retest agreement: an answer matches the majority of the same participant's other answers "
            text += f"to the same question in {percent(themselves)}"
            notes = [f"{count(again)} comparisons"] if again else []
            notes += [_AMONG] if copies else []
            most = most_of_repeated_answers(facts)
            notes += [f"{percent(most, 0)} of them by one participant, on whom it rests"] if most else []
            text += f" ({'; '.join(notes)})." if notes else "."
            yield Finding("test_retest_agreement", text, {"share": themselves, "answers": again})
    if not summary["triplets"] or not facts.published.snapshot.section("triplet_counts"):
        return
    columns = triplet_columns(facts.published.snapshot)
    ties = int(np.count_nonzero((columns.n_lo == columns.n_hi) & (columns.n_lo > 0)))
    votes = columns.n_lo + columns.n_hi
    again = votes > 1  # a question with one answer agrees with itself
    n_repeated, pairs = int(np.count_nonzero(again)), summary["contradicting_pairs"]
    minority = summary["contradicting_triplets"] / max(float(votes[again].sum()), 1.0)
    figures = {"questions": pairs, "repeated": n_repeated, "ties": ties, "share": minority}
    if pairs and copies and copies >= MANY_COPIES * n_repeated:
        text = f"{amount(pairs, 'question has', 'questions have')} conflicting answers. Of how many with several "
        text += f"answers is not said: {_AMONG}."
        figures = {"questions": pairs}
    elif pairs:
        text = f"{count(pairs)} of {amount(n_repeated, 'question')} with several answers "
        text += f"{'has' if pairs == 1 else 'have'} conflicting answers ({count(ties)} of them tied); "
        text += f"{percent(minority)} of the answers to questions with several answers disagree with the "
        text += "majority for their question (ties count half)."
        text += f" Here, {_AMONG}." if copies else ""
    else:
        text = "No answer conflicts with another."
    if summary["quadruplets"]:
        text += " Comparisons of four objects are not among these answers."
    yield Finding("conflicting_answers", text, figures)


def order(facts: Facts) -> Iterator[Finding]:
    """What the partial order keeps and drops."""
    guard = facts.summary["guard"]
    again, against, cycles = (guard.get(verdict, 0) for verdict in ("duplicate", "contradiction", "cycle"))
    size = facts.summary["order_kept"]  # now: `accepted` counts from the beginning, whatever was forgotten since
    if not size:
        return
    text = f"The partial order keeps {amount(size, 'comparison')}; {amount(again, 'later comparison')} repeated "
    text += "one of them."
    if against or cycles:
        text += (
            f" It dropped {amount(against, 'comparison that contradicts', 'comparisons that contradict')} one that it "
            f"keeps and {count(cycles)} that would close a cycle. Only the partial order drops comparisons; map, "
            "clusters and similarities use all of them."
        )
    if facts.published.excluded:  # the guard does not know whose comparisons these were
        text += " What was repeated or dropped is counted with the excluded participants."
    yield Finding("partial_order", text, {"kept": size, **guard})


def difference_tests(report: Mapping[str, Any]) -> list[str]:
    """The significant tests of individual differences: of models of single participants, of weights on the axes, and
    of all participants together. Participants differ if there is one.

    >>> difference_tests({"participants": 15, "p_value": 0.93, "who": [{"p_value": 0.004}]})
    ["1 participant predicted significantly better by a model of their own, p = .004, Holm's correction"]
    """
    tests, rows = [], report.get("who")
    if isinstance(rows, list) and rows:
        counted = (figure(report, "participants") or 0) >= MIN_PARTICIPANTS
        who = amount(len(rows), "participant") if counted else "participants"
        least = [p for row in rows if isinstance(row, Mapping) and (p := figure(row, "p_value")) is not None]
        test = f", {'smallest ' if len(rows) > 1 else ''}{apa_p_value(min(least))}, Holm's correction" if least else ""
        tests.append(f"{who} predicted significantly better by a model of their own{test}")
    of_weights, of_all = figure(report, "p_of_weights"), figure(report, "p_value")
    if of_weights is not None and of_weights < WEIGHTS_LEVEL:
        tests.append(f"weights on the axes predict better, {apa_p_value(of_weights)}")
    if of_all is not None and of_all <= SCORE_LEVEL:
        tests.append(f"score test, {apa_p_value(of_all)}")
    return tests


def differences(facts: Facts) -> Iterator[Finding]:
    """Whether participants differ from one map, how many do, and groups of participants."""
    report = facts.report("embedding").get("individual_differences")
    if not isinstance(report, Mapping) or facts.beats_chance is False:
        return
    people, p = (figure(report, name) for name in ("participants", "p_value"))
    if people is None or p is None:
        if people and people > 1:
            text = f"Individual differences were not tested: {report.get('verdict')}."
            yield Finding("differences_untested", text, level=GAP)
        return
    rows = report.get("who")
    who = len(rows) if isinstance(rows, list) else 0
    figures = {"participants": people, "p_value": p, "who": who}
    significant = difference_tests(report)
    many, one = figure(report, "own", "accuracy"), figure(report, "one_map", "accuracy")
    better = many is not None and one is not None and many - one >= SMALL_DIFFERENCE
    if not who and figure(report, "shrinkage") is None and not better:
        between = amount(int(people), "participant")
        text = f"No individual differences were found between {between} (score test, {apa_p_value(p)})."
        if significant:
            text = f"Answers of {between} differ more than by chance ({significant[0]}), but no model of their own "
            text += "predicts a participant's held-out comparisons significantly better than one map."
        yield Finding("no_differences", text, figures)
        return
    if not significant:
        text = f"Individual differences between {amount(int(people), 'participant')} are not significant (score test, "
        text += f"{apa_p_value(p)})."
    else:
        text = f"Participants differ ({amount(int(people), 'participant')}; {'; '.join(significant)})."
    if many is not None and one is not None:
        text += (
            f" With weights and maps of their own, {percent(many)} of held-out comparisons are predicted correctly; "
        )
        end = "." if better else ": a small difference."
        text += f"with one map for everybody, {percent(one)}{end}"
    listed = who and not facts.commands.lists_participants
    command = f"{facts.commands.report} --participants" if listed else ""
    yield Finding("differences", text, figures | {"accuracy": many, "accuracy_of_one_map": one}, command)
    groups, groups_p = figure(report, "groups", "count"), figure(report, "groups", "p_value")
    if groups is not None and groups_p is not None and people >= MIN_PARTICIPANTS:
        text = (
            f"Participants form {int(groups)} groups" if groups > 1 else "No separate groups of participants were found"
        )
        yield Finding(
            "participant_groups", f"{text} (p = {p_value(groups_p)}).", {"groups": groups, "p_value": groups_p}
        )
