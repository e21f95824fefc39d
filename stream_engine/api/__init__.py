"""The engine in Python: `read` and `Study` for scripts and notebooks, estimators for scikit-learn and river.

    frames ──columns──▶ reading ──engine──▶ Study ──refits on its snapshot──▶ frames, maps, questions, a report
    files  ──records──▶

Nothing is computed here that is not computed elsewhere: what is read is read by the decoders of a run, counted by its
`Engine`, and what is asked for is a refit, an export, or a section of the report. There is no folder on disk unless
`Study.save` makes one. The public names are those of `stream_engine` and `stream_engine.estimators`.

    frames      pandas, polars, Arrow and what else people hold tables in, as Arrow columns
    reading     `read`: files or a frame to a study
    options     how answers and questions are read, and which files are meant
    learning    an engine that judges when somebody asks
    feeding     columns to an engine, in batches; what was refused
    study       `Study`
    object_map  `Map`: where the objects lie, as a picture and as a frame
    questions   questions in, questions out
    results     columns as the frame that a person works with
    answers     what scikit-learn's and river's callers pass, as comparisons
    boosting, clustering, embedding, similarity, online    one family of estimators each
"""
