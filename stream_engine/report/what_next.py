"""What to do next: what to ask, and where the answers are thin."""

from stream_engine.report import Section
from stream_engine.report.material import Material
from stream_engine.report.words import some

ENOUGH = 10  # answers about each object, below which any question about it helps


def section(material: Material) -> Section:
    """One piece of advice, and the command that follows it."""
    answers = material.answers.answers
    if len(answers) < 3:
        return Section("What to ask next", "At least three objects are needed before anything can be asked.")
    thin = int((answers < ENOUGH).sum())
    says = (
        f"{some(thin, 'object has', 'objects have')} fewer than {ENOUGH} answers: ask about these first."
        if thin
        else "Every object has been asked about. The next questions are best where the model is unsure."
    )
    strategy = " --strategy coverage" if thin else ""
    return Section(
        "What to ask next", says, notes=(f"stream-engine ask --state {material.directory} --n 100{strategy}",)
    )
