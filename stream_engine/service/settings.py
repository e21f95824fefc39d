"""One TOML file, the environment and the command line become one frozen `Settings`; rooms receive plain arguments.

Command line over environment (`STREAM_ENGINE__SECTION__KEY`) over file over default. The only reader of the
configuration file and of the environment. A value `{ env = "NAME" }` or `{ file = "PATH" }` in the section [kafka] is a
secret: it is read when the settings are loaded and printed as `***`.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct, field

from stream_engine.accumulators import ACCUMULATORS, Forgetting
from stream_engine.data.comparisons import EVENT_TYPES
from stream_engine.formats import FORMATS
from stream_engine.kernel_learning.auxiliary_files import NO_FILE, SUFFIXES, KernelSpec
from stream_engine.refits import REFITS, refit_module
from stream_engine.state.engine import DEFAULT_ACCUMULATORS

ENVIRONMENT = "STREAM_ENGINE__"
HIDDEN = "***"
NO_GUARD = "off"  # the word that stands beside the guard's policies and keeps no order

_Count = Annotated[int, Meta(ge=0)]
_Positive = Annotated[int, Meta(ge=1)]
_Seconds = Annotated[float, Meta(ge=0)]


class BadSettings(ValueError):
    """The configuration cannot be used; the message is one line: where, what, got, expected."""


class _Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"type_": "type"}):
    """Keys of a TOML table; unknown ones are refused."""


class Input(_Section):
    """How events are read: see `--type`, `--columns`, `--where`, `--format`, `--labels`."""

    type_: Literal[EVENT_TYPES] | None = None  # of every event; none: each says its own
    columns: dict[str, str] = {}  # contract field -> name(s) in the input, several joined by "|"
    where: dict[str, str] = {}  # only events whose field has this text
    format: Literal[tuple(FORMATS)] | None = None  # none: from the file name
    labels: str | None = None  # file of labels
    labels_columns: dict[str, str] = {}
    block_bytes: _Positive = 8 << 20  # how much is decoded at once
    max_reject_ratio: Annotated[float, Meta(ge=0, le=1)] = 0.5
    start: Literal["none", "earliest", "latest"] = "none"  # Kafka, first start only
    on_offset_loss: Literal["fail", "earliest"] = "fail"
    shard: str | None = None  # "i/n": this process's share of the partitions
    stall_after: _Seconds = 300.0  # seconds with lag and without progress until the watchdog speaks


class SnapshotSettings(_Section):
    """When snapshots are taken and how many stay."""

    every: _Count = 1_000_000  # comparisons; 0: never for this reason
    interval: _Seconds = 60.0  # seconds; 0: never for this reason
    keep: _Positive = 3


class RefitSettings(_Section):
    """Which refits run on published snapshots; `params` holds a table per refit."""

    enabled: bool = True
    kinds: tuple[Literal[tuple(REFITS)], ...] = ("sdp_clustering", "triplet_boost")
    seed: int = 0
    params: dict[str, dict[str, Any]] = {}


class CountSettings(_Section):
    """Where a run keeps its counts; what they are does not depend on it."""

    on_disk_above: _Count = 0  # bytes; larger arrays go to unnamed files in DIR/scratch, paged by the kernel; 0: none


class GuardSettings(_Section):
    """The partial-order guard; `policy = "off"` keeps no order."""

    policy: Literal["first", "drop-both", "majority", "sift", "off"] = "first"


class DriftSettings(_Section):
    """When a worsening of predictions is an alarm; an alarm asks for a snapshot, and so for refits."""

    enabled: bool = True
    delta: Annotated[float, Meta(gt=0, lt=1)] = 0.2  # the smaller, the fewer false alarms and the later a true one
    quiet: _Count = 100_000  # comparisons between alarms; what is noticed meanwhile is told when they are over


class ForgettingSettings(_Section):
    """How the accumulators `adds3_decayed`, `triplet_counts_decayed` and `window` forget: `by` the count of triplets or
    the time of events; `half_life` and `window` in triplets or seconds."""

    by: Literal["count", "time"] = Forgetting().by
    half_life: Annotated[float, Meta(gt=0)] = Forgetting().half_life
    window: Annotated[float, Meta(gt=0)] = Forgetting().window

    def __post_init__(self):
        if self.by == "count" and self.window < 1:
            raise ValueError(f"window: got {self.window:g} triplets, expected at least 1")


class OnlineSettings(_Section):
    """A kernel learned between snapshots, over [kernels]; never part of the counts."""

    enabled: bool = False
    rank: _Positive = 20
    loss: Literal["ste", "hinge"] = "ste"


class LogSettings(_Section):
    """What is said on standard error."""

    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"


class Settings(_Section):
    """Everything that can be set, with its default."""

    source: tuple[str, ...] = ()
    state: str | None = None
    follow: bool = False
    listen: str | None = None  # HOST:PORT of the HTTP server; none: no server
    dead_letters: str | None = None  # none: DIR/dead_letters; or kafka://…/topic beside it
    accumulators: tuple[Literal[tuple(ACCUMULATORS)], ...] = DEFAULT_ACCUMULATORS
    input: Input = Input()
    snapshot: SnapshotSettings = SnapshotSettings()
    refits: RefitSettings = RefitSettings()
    kernels: dict[str, KernelSpec] = {}  # auxiliary kernels, for every refit that takes some
    counts: CountSettings = CountSettings()
    guard: GuardSettings = GuardSettings()
    drift: DriftSettings = DriftSettings()
    online: OnlineSettings = OnlineSettings()
    forgetting: ForgettingSettings = ForgettingSettings()
    log: LogSettings = LogSettings()
    kafka: dict[str, Any] = field(default_factory=dict)  # options of the client, by its own names


def load(path: str | None, overrides: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from a file (or none), the environment and `overrides` ({"section.key": value}; None is not given).

    Raises `BadSettings`.
    """
    tree: dict[str, Any] = {}
    if path:
        tree = _read(Path(path))
        where = str(path)
        _check_keys(tree, Settings, where, ())
        _beside(tree, Path(path).parent)
    for name, text in sorted(environment.items()):
        if name.startswith(ENVIRONMENT):
            keys = tuple(part.lower() for part in name.removeprefix(ENVIRONMENT).split("__"))
            given: dict[str, Any] = {}
            put(given, keys, toml_value(text))
            _check_keys(given, Settings, name, ())
            put(tree, keys, toml_value(text))
    for dotted, value in overrides.items():
        if value is not None:
            put(tree, tuple(dotted.split(".")), value)
    try:
        if "kafka" in tree:
            tree["kafka"] = _revealed(tree["kafka"], path or "environment", environment)
        _check_kernels(tree.get("kernels"), path or "settings")
        settings = msgspec.convert(tree, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise BadSettings(f"{path or 'settings'}: {_said(error)}") from None
    _check_files(settings.kernels, "kernels")
    for kind, params in settings.refits.params.items():
        refit_params(kind, params)
    return settings


def params_of(settings: Settings, kind: str) -> dict[str, Any]:
    """What the settings say of a refit, as plain values: its own table, and [kernels] where it takes auxiliary kernels
    and names neither kernels nor features of its own."""
    given = dict(settings.refits.params.get(kind, {}))
    fields = {f.encode_name for f in msgspec.structs.fields(refit_module(kind).Params)}
    if settings.kernels and "kernels" in fields and not {"kernels", "features"} & given.keys():
        given["kernels"] = msgspec.to_builtins(settings.kernels)
    return given


def refit_params(kind: str, given: Mapping[str, Any]) -> Struct:
    """The checked `Params` of a refit. Raises `BadSettings`."""
    if kind not in REFITS:
        raise BadSettings(f"refits.params.{kind}: unknown refit{_nearest(kind, REFITS)}")
    params = refit_module(kind).Params
    _check_keys(given, params, f"refits.params.{kind}", ())
    try:
        checked = msgspec.convert(dict(given), params, strict=False)
    except msgspec.ValidationError as error:
        raise BadSettings(f"refits.params.{kind}: {_said(error)}") from None
    _check_files(getattr(checked, "kernels", {}), f"refits.params.{kind}.kernels")
    return checked


def _check_kernels(kernels: Any, where: str) -> None:
    """One by one, because msgspec does not say which of them is wrong."""
    for name, table in kernels.items() if isinstance(kernels, dict) else ():
        try:
            msgspec.convert(table, KernelSpec, strict=False)
        except msgspec.ValidationError as error:
            raise BadSettings(f"{where}: {_said(error, f'kernels.{name}')}") from None


def _check_files(kernels: Mapping[str, KernelSpec], where: str) -> None:
    """What can be said of [kernels] before their files are read: that they are there, and of a kind we know."""
    for name, spec in kernels.items():
        for key, file in (("file", spec.file), ("objects", spec.objects)):
            if file is not None and not Path(file).is_file():
                raise BadSettings(f"{where}.{name}.{key}: got {file!r}, {NO_FILE}")
        if not spec.file.endswith(SUFFIXES):
            raise BadSettings(
                f"{where}.{name}.file: got {spec.file!r}, expected a name ending in {', '.join(SUFFIXES)}"
            )


def _beside(tree: dict[str, Any], folder: Path) -> None:
    """File names of kernels in a configuration file are relative to it."""
    params = tree.get("refits", {}).get("params", {}) if isinstance(tree.get("refits"), dict) else {}
    tables = [tree.get("kernels"), *(each.get("kernels") for each in params.values() if isinstance(each, dict))]
    features = [each.get("features") for each in params.values() if isinstance(each, dict)]
    for spec in [*(spec for table in tables if isinstance(table, dict) for spec in table.values()), *features]:
        for key in ("file", "objects"):
            if isinstance(spec, dict) and isinstance(spec.get(key), str):
                spec[key] = str(folder / spec[key])


def shown(settings: Settings) -> dict[str, Any]:
    """The settings in force as plain values; secrets are hidden."""
    return _hidden(msgspec.to_builtins(msgspec.structs.replace(settings, kafka=_hidden(settings.kafka))))


def shard(text: str | None) -> tuple[int, int] | None:
    """`"i/n"` as (i, n).

    >>> shard("2/4")
    (2, 4)
    """
    if text is None:
        return None
    i, _, n = text.partition("/")
    if not (i.isdigit() and n.isdigit() and int(i) < int(n)):
        raise BadSettings(f"input.shard: got {text!r}, expected i/n with 0 <= i < n, such as 0/4")
    return int(i), int(n)


def mapping(text: str, option: str, separator: str = ",") -> dict[str, str]:
    """`"anchor=probe,near=chosen"` as a dict.

    >>> mapping("objects=left|right|middle,central=central", "--columns")
    {'objects': 'left|right|middle', 'central': 'central'}
    """
    pairs = [part.partition("=") for part in text.split(separator) if part]
    for key, equals, value in pairs:
        if not (key and equals and value):
            raise BadSettings(f"{option}: got {key + equals + value!r}, expected NAME=VALUE")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(
            f"{path}: cannot be read: {error.strerror if isinstance(error, OSError) else error}"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise BadSettings(f"{path}: not TOML: {error}") from None


def toml_value(text: str) -> Any:
    """A value from the environment or an assignment: TOML where it is TOML, else the text itself.

    >>> toml_value('3'), toml_value('[1, 2]'), toml_value('admm')
    (3, [1, 2], 'admm')
    """
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def put(tree: dict[str, Any], keys: tuple[str, ...], value: Any) -> None:
    """Set tree[a][b]… for keys (a, b, …), sections made as needed."""
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise BadSettings(f"{'.'.join(keys)}: {key} is a value, not a section")
    tree[keys[-1]] = value


def _check_keys(tree: Mapping[str, Any], struct: type[Struct], where: str, path: tuple[str, ...]) -> None:
    fields = {f.encode_name: f.type for f in msgspec.structs.fields(struct)}
    for key, value in tree.items():
        if key not in fields:
            dotted = ".".join((*path, key))
            raise BadSettings(f"{where}: unknown key {dotted}{_nearest(key, fields)}")
        kind = fields[key]
        if isinstance(kind, type) and issubclass(kind, Struct) and isinstance(value, Mapping):
            _check_keys(value, kind, where, (*path, key))
        named = next((each for each in get_args(kind) if isinstance(each, type) and issubclass(each, Struct)), None)
        if get_origin(kind) is dict and named and isinstance(value, Mapping):  # tables by names of one's own
            for name, table in value.items():
                if isinstance(table, Mapping):
                    _check_keys(table, named, where, (*path, key, name))


def _nearest(key: str, known) -> str:
    near = [name for name in known if name.startswith(key)] or difflib.get_close_matches(key, list(known), 1)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}"


def _said(error: msgspec.ValidationError, at: str = "") -> str:
    """msgspec's sentence with our way of naming a place."""
    what, _, path = str(error).partition(" - at `$")
    place = ".".join(filter(None, (at, path.strip("`").lstrip("."))))
    return f"{place or 'settings'}: {what[0].lower() + what[1:]}"


class _Secret(str):
    """Text that came from the environment or a file by reference and is not shown."""

    def __repr__(self) -> str:
        return HIDDEN


def _is_reference(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in ("env", "file")


def _revealed(value: Any, where: str, environment: Mapping[str, str]) -> Any:
    if _is_reference(value):
        ((how, name),) = value.items()
        try:
            return _Secret(environment[name] if how == "env" else Path(name).read_text().strip())
        except KeyError:
            raise BadSettings(f"{where}: a secret is to come from the environment variable {name}, not set") from None
        except OSError as error:
            raise BadSettings(f"{where}: a secret is to come from {name}: {error.strerror}") from None
    if isinstance(value, dict):
        return {key: _revealed(each, where, environment) for key, each in value.items()}
    return value


def _hidden(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _hidden(each, name) for name, each in value.items()}
    if isinstance(value, str) and (isinstance(value, _Secret) or _sounds_secret(key)):
        return HIDDEN
    return value


def _sounds_secret(key: str) -> bool:
    return any(word in key.lower() for word in ("password", "secret", "token"))
