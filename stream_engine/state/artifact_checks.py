"""Whether the arrays of an artifact are what its kind declares, without loading the solver that made it."""

from importlib import import_module

from stream_engine.data.array_checks import ArraySpec, check_array, check_range, pattern_of
from stream_engine.data.container import Corrupt
from stream_engine.state.array_declarations import OBJECTS, SUBSET, declared
from stream_engine.state.artifact import Artifact
from stream_engine.state.artifact_schemas import SCHEMAS, Schema

REFIT_PACKAGE = "stream_engine.refits"  # loaded by its text: a refit is added there, not here


def schema_of(kind: str) -> Schema | None:
    """What artifacts of a kind hold; None for a kind that nothing here makes, and so nothing here looks into."""
    if kind in SCHEMAS:
        return SCHEMAS[kind]
    makers = import_module(REFIT_PACKAGE).REFITS
    if kind not in makers:
        return None
    module = vars(import_module(makers[kind]))
    return Schema(module.get("AXES", {}), module.get("REQUIRED", ()))


def check_artifact(artifact: Artifact, n_objects: int | None = None) -> None:
    """Raise `Corrupt` unless the arrays are what their kind says; `n_objects` of the snapshot that it is read beside,
    which knows all objects that the artifact knows. Arrays that are not declared are not checked."""
    schema = schema_of(artifact.kind)
    if schema is None:
        return
    if missing := [name for name in schema.required if name not in artifact.arrays]:
        raise Corrupt(f"got no {', '.join(missing)}, expected {', '.join(schema.required)}")
    declared_arrays = {
        name: _all_objects(declared(schema.axes, name, artifact.params), "ids" in artifact.arrays)
        for name in artifact.arrays
        if pattern_of(name, schema.axes) is not None
    }
    sizes: dict[str, int] = {}
    for name, declaration in declared_arrays.items():
        check_array(name, declaration, artifact.arrays[name], sizes)
    if n_objects is not None and sizes.setdefault(OBJECTS, n_objects) > n_objects:
        raise Corrupt(f"speaks of {sizes[OBJECTS]} objects, the snapshot knows {n_objects}")
    for name, declaration in declared_arrays.items():
        check_range(name, declaration, artifact.arrays[name], sizes)
    schema.check(artifact)


def _all_objects(spec: ArraySpec, has_ids: bool) -> ArraySpec:
    """The same, where a subset is all objects."""
    if has_ids or spec.axes is None:
        return spec
    return spec._replace(axes=tuple(OBJECTS if axis == SUBSET else axis for axis in spec.axes))
