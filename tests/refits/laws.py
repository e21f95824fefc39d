"""What `check_refit` is told of each refit: parameters that make it quick, and laws that do not hold, with reasons."""

from pathlib import Path

FEATURES = str(Path(__file__).with_name("features.csv"))
PARAMS = {
    "alignment": {"features": {"x": {"file": FEATURES}, "y": {"file": FEATURES, "columns": ["c", "d"]}}},
    "dimensions": {"fits": 2},
    "classify": {"similarities": ["k1"], "rounds": 200, "neighbours": [1, 3], "penalties": [1.0]},
}

EXCLUDED = {
    "alignment": {
        "renamed_objects": "objects and answers are held out by a hash of names: ids and arrival do not matter",
        "subset_of_objects": "it is of the objects that have features",
        "subset_of_objects_of_poor_snapshots": "it is of the objects that have features",
    },
    "reliability": {
        "previous_artifact": "its rows are workers, not objects; test_worker_reliability.py continues one from another",
        "subset_of_objects": "it is about workers, and every answer tells of them",
        "subset_of_objects_of_poor_snapshots": "it is about workers, and every answer tells of them",
    },
    "triplet_boost": {
        "permuted_ids": "references are drawn by number; with the same pairs it holds, see test_triplet_boost"
    },
    "classify": {"renamed_objects": "objects are held out by a hash of names: ids and arrival do not matter"},
    "embedding": {
        "renamed_objects": "answers are held out by a hash of names: ids and arrival do not matter",
        "permuted_ids": "there are no labels; that ids do not matter is tested on distances in tests/embedding",
        "subset_of_objects": "an embedding costs O(n d): it is of all objects",
        "subset_of_objects_of_poor_snapshots": "an embedding costs O(n d): it is of all objects",
    },
    "clusters": {
        "renamed_objects": "the embedding's setting is chosen by a hash of names: ids and arrival do not matter",
    },
    "dimensions": {
        "renamed_objects": "responses are held out by a hash of names: ids and arrival do not matter",
        "subset_of_objects": "it costs O(n d): it is of all objects",
        "subset_of_objects_of_poor_snapshots": "it costs O(n d): it is of all objects",
    },
    "kernel_learning": {
        "renamed_objects": "objects and comparisons are held out by a hash of names: ids and arrival do not matter",
        "permuted_ids": "there are no labels; that ids do not matter is tested on the objective and on what is chosen",
    },
    "partial_order_embedding": {
        "renamed_objects": "objects and comparisons are held out by a hash of names: ids and arrival do not matter",
        "permuted_ids": "there are no labels; that ids do not matter is tested on the objective and on what is chosen",
    },
}
