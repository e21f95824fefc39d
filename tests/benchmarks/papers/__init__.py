"""The five papers to the letter: one file a paper, each with its rows.

A file here is a paper when it has `paper(kept)`, which gives a `rows.Paper`. Its name goes into `PAPERS`.
"""

PAPERS = {
    "heim": "tests.benchmarks.papers.heim",
    "mcfee": "tests.benchmarks.papers.mcfee",
    "perrot2019": "tests.benchmarks.papers.perrot2019",
    "perrot2020": "tests.benchmarks.papers.perrot2020",
    "kleindessner": "tests.benchmarks.papers.kleindessner",
}
