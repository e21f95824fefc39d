"""What can be set: one struct for each TOML table, every key with its default and its meaning.

`loading` makes one frozen `Settings` of a TOML file, the environment and the command line, and keeps secrets hidden.
Packages receive plain arguments.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct, field

from connectors.kafka.start_offsets import ON_OFFSET_LOSS, START_MODES
from stream_engine.counts import ACCUMULATORS, DEFAULT_ACCUMULATORS, Forgetting
from stream_engine.data.comparisons import EVENT_TYPES
from stream_engine.formats import FORMATS
from stream_engine.formats.options import FIRST_OF, Bounds
from stream_engine.kernel_learning.auxiliary_files import KernelSpec
from stream_engine.refits import REFITS
from stream_engine.service import logs

# closed sets of words, read from the rooms that know them; a type checker cannot see into registries and reads `str`
if TYPE_CHECKING:
    AccumulatorName: TypeAlias = str
    AnswersBy: TypeAlias = str
    EventType: TypeAlias = str
    ForgetBy: TypeAlias = str
    Format: TypeAlias = str
    LogFormat: TypeAlias = str
    LogLevel: TypeAlias = str
    OnOffsetLoss: TypeAlias = str
    Refit: TypeAlias = str
    StartMode: TypeAlias = str
else:
    AccumulatorName = Literal[tuple(ACCUMULATORS)]
    AnswersBy = Literal[tuple(FIRST_OF)]
    EventType = Literal[EVENT_TYPES]
    ForgetBy = Literal["count", "time"]
    Format = Literal[tuple(FORMATS)]
    LogFormat = Literal[logs.FORMATS]
    LogLevel = Literal[tuple(logs.LEVELS)]
    OnOffsetLoss = Literal[ON_OFFSET_LOSS]
    Refit = Literal[tuple(REFITS)]
    StartMode = Literal[START_MODES]

_Count = Annotated[int, Meta(ge=0)]
_Positive = Annotated[int, Meta(ge=1)]
_Seconds = Annotated[float, Meta(ge=0)]
_Token = Annotated[str, Meta(min_length=16)]


class BadSettings(ValueError):
    """The configuration cannot be used; the message is one line: where, what, got, expected."""


class _Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"type_": "type"}):
    """Keys of a TOML table; unknown ones are refused."""


class Input(_Section, frozen=True):
    """How events are read: see `--type`, `--columns`, `--where`, `--format`, `--labels` and the options of text."""

    type_: EventType | None = None  # the type of every event; not set: each says its own
    columns: dict[str, str] = {}  # contract field -> name(s) in the input, several joined by "|"
    where: dict[str, str] = {}  # only events whose field has this text; "phase!=" and "rt>" compare otherwise
    format: Format | None = None  # of the input; not set: from the file name
    delimiter: str | None = None  # between columns of a table of text; not set: found in its header
    encoding: str | None = None  # of text; not set: UTF-8, or UTF-16 with its mark
    header: bool = True  # the first row names the columns; false: they are called 1, 2, 3, and so on
    skip_rows: _Count = 0  # lines before the header
    answers_by: AnswersBy = "name"  # how odd, central, chosen are said; position: 1 is the first, index: 0 is
    codes: dict[str, dict[str, str]] = {}  # field of an answer -> code -> position, or name of a column
    labels: str | None = None  # file of labels: columns object and label
    labels_columns: dict[str, str] = {}  # contract field -> name in that file
    block_bytes: _Positive = 8 << 20  # how much is decoded at once
    max_message_bytes: Annotated[int, Meta(ge=1024)] = Bounds().max_bytes  # of a message, line or row, once unpacked
    max_message_rows: _Positive = Bounds().max_rows  # events of a message; more: refused as too_large
    worker_votes: bool = True  # a new state keeps who answered what, where events name workers
    count_copies: bool = False  # a file that holds what one of another name held is read too
    max_reject_ratio: Annotated[float, Meta(ge=0, le=1)] = 0.5  # a run ends when more than this share is refused
    start: StartMode = "none"  # Kafka: where a first start begins; none: it must be said
    on_offset_loss: OnOffsetLoss = "fail"  # Kafka: when retention was faster than the engine
    shard: str | None = None  # "i/n": this process's share of the partitions
    stall_after: _Seconds = 300.0  # seconds with lag and without progress until the watchdog speaks


class SnapshotSettings(_Section, frozen=True):
    """When snapshots are taken and how many stay."""

    every: _Count | None = None  # comparisons; 0: never; not set: a quarter more than before, ten million at least
    interval: _Seconds = 60.0  # seconds between snapshots; 0: never for this reason
    keep: _Positive = 3  # how many snapshots stay


class RefitSettings(_Section, frozen=True):
    """Which refits run on published snapshots; `params` holds a table per refit."""

    enabled: bool = True  # false: count only
    kinds: tuple[Refit, ...] = ("sdp_clustering", "embedding", "triplet_boost", "classify")  # two need labels
    also: tuple[Refit, ...] = ()  # beside `kinds`
    seed: int = 0  # of every refit
    params: dict[str, dict[str, Any]] = {}  # kind -> parameter -> value, as `[refits.params.KIND]`

    @property
    def wanted(self) -> tuple[str, ...]:
        """Every kind that runs."""
        return tuple(dict.fromkeys((*self.kinds, *self.also)))


class CountSettings(_Section, frozen=True):
    """Where a run keeps its counts; what they are does not depend on it."""

    on_disk_above: _Count = 0  # bytes of an array; larger ones go to unnamed files in DIR/scratch; 0: none does


class SigningSettings(_Section, frozen=True):
    """With which key snapshots and artifacts are signed, and must be."""

    key: str | None = None  # { env = "NAME" } or { file = "PATH" }; none: STREAM_ENGINE_STATE_KEY, or no signatures
    accept_unsigned: bool = False  # files without a signature pass; what is written has one


class DriftSettings(_Section, frozen=True):
    """When a worsening of predictions is an alarm; an alarm asks for a snapshot, and so for refits."""

    enabled: bool = True  # watch for it


class ForgettingSettings(_Section, frozen=True):
    """How the accumulators `adds3_decayed`, `triplet_counts_decayed` and `window` forget: `by` the count of triplets or
    the time of events; `half_life` and `window` in triplets or seconds."""

    by: ForgetBy = Forgetting().by  # the count of triplets, or the time of events
    half_life: Annotated[float, Meta(gt=0)] = Forgetting().half_life  # triplets or seconds until one counts half
    window: Annotated[float, Meta(gt=0)] = Forgetting().window  # triplets or seconds that the window holds

    def __post_init__(self):
        if self.by == "count" and self.window < 1:
            raise ValueError(f"window: got {self.window:g} triplets, expected at least 1")


class OnlineSettings(_Section, frozen=True):
    """An embedding that learns between fits, and takes over each one that is published; never part of the counts."""

    enabled: bool = False  # keep one
    dimensions: _Positive = 3  # of its points, until there is a fit


class HttpSettings(_Section, frozen=True):
    """Who may ask over HTTP, and how much at once; `listen` says where. Secrets come by reference: `{ env = "NAME" }`
    or `{ file = "PATH" }`."""

    token: _Token | None = None  # asked for on every path but the probes; none: whoever reaches the address may read
    admin_token: _Token | None = None  # asked for by POST /admin/...; none: there is no POST /admin/...
    tls_certificate: str | None = None  # PEM file of the certificate and those above it; none: no TLS
    tls_key: str | None = None  # PEM file of its key
    allowed_hosts: tuple[str, ...] = ()  # names by which clients may call this server, beside those of its address
    show_workers: bool = False  # whether that page shows workers one by one
    objects: str | None = None  # folder of pictures or table object,image,text, which that page shows
    cache_bytes: _Positive = 4 << 30  # of exports in DIR/served; a larger export is refused

    def __post_init__(self):
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key: got one of them, expected both or neither")


class LogSettings(_Section, frozen=True):
    """What is said on standard error."""

    format: LogFormat = "text"  # how log lines look
    level: LogLevel = "info"  # what is said at all


class Settings(_Section, frozen=True):
    """Everything that can be set, with its default."""

    source: tuple[str, ...] = ()  # files, globs, `-`, kafka://HOST:PORT/TOPIC
    state: str | None = None  # the state directory; must be said here or on the command line
    follow: bool = False  # keep reading as files grow
    listen: str | None = None  # HOST:PORT of the HTTP server; not set: no server
    memory_gb: Annotated[float, Meta(gt=0)] | None = None  # for the process and its refits; not set: what is free
    dead_letters: str | None = None  # folder of refused events, not set: DIR/dead_letters; or kafka://…/topic beside it
    dead_letters_keep_bytes: _Count = 10_000_000_000  # of refused events; above, the oldest go; 0: no limit
    accumulators: tuple[AccumulatorName, ...] = DEFAULT_ACCUMULATORS  # what a new state counts
    guard: bool = True  # keep the partial order of the comparisons; a state goes on only as it was begun
    input: Input = Input()
    snapshot: SnapshotSettings = SnapshotSettings()
    refits: RefitSettings = RefitSettings()
    kernels: dict[str, KernelSpec] = {}  # auxiliary kernels, for every refit that takes some
    counts: CountSettings = CountSettings()
    signing: SigningSettings = SigningSettings()
    drift: DriftSettings = DriftSettings()
    online: OnlineSettings = OnlineSettings()
    forgetting: ForgettingSettings = ForgettingSettings()
    http: HttpSettings = HttpSettings()
    log: LogSettings = LogSettings()
    publish: dict[
        str, str
    ] = {}  # table of an export -> kafka://HOST:PORT/TOPIC or jsonl://FILE that keeps its newest rows
    kafka: dict[str, Any] = field(default_factory=dict)  # options of the client, by its own names
