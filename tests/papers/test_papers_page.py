"""The page of the five papers: the papers' own words, what is kept, and how the page is put together."""

import re
from collections import Counter
from importlib import import_module

import numpy as np
import pytest

from deploy.manual import DOCS
from stream_engine.kernel_learning.gram_comparisons import excess, triplet_rows
from tests.benchmarks.__main__ import main as benchmarks
from tests.benchmarks.papers import PAPERS, command, heim_early
from tests.benchmarks.papers.kept import Cell, Kept
from tests.benchmarks.papers.page import cells_of, counted
from tests.benchmarks.papers.rows import AGREES, DIFFERS, IDENTITY, NOT_RUN, SHOWN, VERDICTS, missing, row
from tests.support.tables import sections


def of_kept(name):
    """A paper from what is kept, nothing made."""
    module = import_module(PAPERS[name])
    return module.paper(Kept(command.HERE / f"{name}.jsonl", module.RESTS_ON, make=False))


@pytest.fixture(scope="module")
def papers():
    return {name: of_kept(name) for name in PAPERS}


def plain(text):
    """A text without line breaks and runs of spaces."""
    return " ".join(text.replace("-\n", "- ").split())


def numbers(text):
    """The numbers of at least two digits in a text, without separators of thousands."""
    return set(re.findall(r"\d+\.\d+|\d{2,}", re.sub(r"(?<=\d),(?=\d{3})", "", text)))


@pytest.mark.data
@pytest.mark.parametrize("name", PAPERS)
def test_quotations_and_numbers_are_the_papers_own(name, papers, judgements):
    """Every quotation stands in the paper's text letter for letter, and so does every number that is called its own."""
    file = judgements.parent / "papers" / papers[name].text
    if not file.exists():
        pytest.skip(f"no text of the paper at {file}")
    text = plain(file.read_text())
    quoted = [each.quote for each in papers[name].rows if each.quote]
    assert len(quoted) > 5
    assert [quote for quote in quoted if plain(quote) not in text] == []
    said = [(each.what, number) for each in papers[name].rows for number in numbers(each.paper)]
    assert [pair for pair in said if pair[1] not in numbers(text)] == []


@pytest.mark.parametrize("name", PAPERS)
def test_every_row_says_how_it_was_judged_or_why_not(name, papers):
    for each in papers[name].rows:
        assert each.place and each.what
        assert each.verdict in VERDICTS
        if each.verdict in (AGREES, DIFFERS, IDENTITY):
            assert each.rule, each
            assert each.made, each
            assert re.search(r"\d", each.ours), each
            assert "nan" not in each.ours.split(), each
        else:
            assert each.ours or each.why, each


def test_the_page_is_written_from_what_is_kept(tmp_path, papers, capsys):
    assert command.main(["--out", str(tmp_path), "--kept"]) == 0
    markdown = (tmp_path / "papers.md").read_text()
    for paper in papers.values():
        assert f"## {paper.title}" in markdown and counted(paper.rows) in markdown
        for each in paper.rows:
            line = "| " + " | ".join(cell.replace("|", "\\|") for cell in cells_of(each)) + " |"
            assert line in markdown.splitlines()
    assert capsys.readouterr().out.count(" CPU s") >= len(PAPERS)


def test_the_measurements_say_how_many_rows_have_each_verdict(papers):
    verdicts = Counter(each.verdict for paper in papers.values() for each in paper.rows)
    (told,) = (text for heading, text in sections(DOCS / "measurements.md") if heading == "The five papers")
    assert list(map(int, re.findall(r"\d+", told.partition("Currently")[2]))) == [verdicts[name] for name in VERDICTS]


def test_stages_can_be_chosen(tmp_path, monkeypatch):
    said = ["benchmarks", "papers", "--out", str(tmp_path), "--kept", "--only", "perrot2020"]
    monkeypatch.setattr("sys.argv", said)
    assert benchmarks() == 0
    assert (tmp_path / "papers.md").read_text().count("\n## ") == 1


def test_a_row_without_its_cells_is_open():
    def judged(*found):
        return f"{sum(f['x'] for f in found)}", True

    cells = [Cell({}, {"x": 1}, {"date": "2026-01-02", "with": "a"}), Cell({}, {"x": 2}, {"date": "2026-01-03"})]
    made = row("Fig. 1", "sum", "", "3", "equal", cells, judged)
    assert (made.ours, made.verdict) == ("3", AGREES)
    assert "2 kept; 2026-01-02 to 2026-01-03" in made.made
    for without in ([], [*cells, None]):
        assert row("Fig. 1", "sum", "", "3", "equal", without, judged).verdict == NOT_RUN
    differs = row("Fig. 1", "sum", "", "4", "equal", cells, lambda *f: ("3", np.bool_(False)))
    same = row("Fig. 1", "sum", "", "3", "equal", cells, judged, identity=True)
    shown = row("Fig. 1", "sum", "", "3", "equal", cells, lambda *f: ("3", None))
    assert (differs.verdict, same.verdict, shown.verdict) == (DIFFERS, IDENTITY, SHOWN)
    told = counted([made, differs, same, shown, missing("", "", "", "", "no data")])
    assert told == "1 agree, 1 differ, 1 identities, 1 shown without a claim, 1 without data here"


def test_algorithm_1_of_heim_descends_by_its_formulas():
    """One step beside the gradient of eq. (10) by differences, then both projections."""
    rng = np.random.default_rng(0)
    n, eta, lambda1, lambda2 = 6, 0.3, 0.2, 0.1
    triplets = np.array([rng.permutation(n)[:3] for _ in range(25)])
    kernels = [x @ x.T for x in rng.normal(size=(2, n, 2))]
    wrong = excess(kernels[0], triplet_rows(triplets)) > 0  # the first kernel answers: its weight grows
    triplets[wrong] = triplets[wrong][:, [0, 2, 1]]

    def loss(k0, mu):
        """Eq. (10) with K'' = K0 + sum mu_a K_a."""
        gram = k0 + sum(m * k for m, k in zip(mu, kernels))
        return np.logaddexp(0, excess(gram, triplet_rows(triplets))).sum()

    k0, mu, step = np.eye(n), np.full(2, 0.5), 1e-6
    slope = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            change = np.zeros((n, n))
            change[i, j] += step / 2
            change[j, i] += step / 2
            slope[i, j] = (loss(k0 + change, mu) - loss(k0 - change, mu)) / (2 * step)
    along = [(loss(k0, mu + step * e) - loss(k0, mu - step * e)) / (2 * step) for e in np.eye(2)]
    values, vectors = np.linalg.eigh(k0 - eta * (slope + lambda1 * np.eye(n)))
    expected = (vectors * np.maximum(values, 0)) @ vectors.T
    weights = np.maximum(mu - eta * (np.array(along) + lambda2), 0)
    (made,) = heim_early.descend(triplets, n, kernels, eta, lambda1, lambda2, (1,))
    assert made.rank == (values > 0).sum() < n and weights.min() == 0 < weights.max()
    np.testing.assert_allclose(made.mu, weights, atol=1e-6)
    np.testing.assert_allclose(made.gram, expected + sum(m * k for m, k in zip(weights, kernels)), atol=1e-6)


def test_every_paper_here_is_registered():
    here = {path.stem for path in command.HERE.glob("*.py") if "\ndef paper(" in path.read_text()}
    assert here == set(PAPERS)
