"""What users import, and from where."""

PUBLIC = {
    "stream_engine": ("Engine", "Triplet", "Quadruplet", "Label", "read_snapshot", "read", "Study", "__version__"),
    "stream_engine.kernels": ("k1", "k2", "mulk4", "features1", "features2", "landmarks", "shift"),
    "stream_engine.snapshot": ("Snapshot", "read_snapshot", "triplet_columns"),
    "stream_engine.refits.sdp_clustering": ("solve", "spur", "Params", "refit"),
    "stream_engine.refits.triplet_boost": ("fit", "predict", "Params", "refit"),
    "stream_engine.refits.spectral": ("Params", "refit"),
    "stream_engine.refits.embedding": ("Params", "refit"),
    "stream_engine.refits.alignment": ("Params", "refit"),
    "stream_engine.refits.hierarchy": ("Params", "refit"),
    "stream_engine.refits.reliability": ("Params", "refit"),
    "stream_engine.refits.kernel_learning": ("Params", "refit"),
    "stream_engine.refits.partial_order_embedding": ("Params", "refit"),
    "stream_engine.estimators": (
        "ComparisonClassifier",
        "ComparisonClustering",
        "ComparisonEmbedding",
        "ComparisonKernel",
        "OrdinalEmbedding",
        "TripletBoostClassifier",
        "as_stream",
    ),
    "stream_engine.testing": ("check_accumulator", "check_format", "check_refit"),
    "connectors": ("Position", "Record", "Source", "SourceFailed", "SinkUnavailable", "UnusableSource"),
}
