"""The engine in Python: `read` and `Study` for scripts and notebooks, estimators for scikit-learn and river.

    frames ──columns──▶ reading ──engine──▶ Study ──refits on its snapshot──▶ frames, maps, questions, a report
    files  ──records──▶

Nothing is computed here: answers are read by the decoders of a run and counted by its `Engine`, and results are those
of refits, exports and sections of the report. The public names are those of `stream_engine` and
`stream_engine.estimators`.

    reading, feeding, study_engine,
    reading_checks                        `read`: files or tables to a study
    frames, options                       tables as Arrow columns; options, layouts and paths
    study, study_tables, study_fits       `Study`: its results, tables and fits
    object_map, dendrogram                results as pictures and tables
    question_tables, output_frames        questions from tables; columns as a frame of pandas, polars or Arrow
    answers, learned_objects              what all estimators share: comparisons in, values of objects out
    boosting, clustering, embedding, similarity, online    one family of estimators each
"""
