"""What can be set: one struct for each TOML table, every key with its default and its meaning.

`loading` makes one frozen `Settings` of a TOML file, the environment and the command line, and keeps secrets hidden.
Packages receive plain arguments.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct, field, structs

from connectors.kafka.start_offsets import ON_OFFSET_LOSS, start_of
from stream_engine.alignment.feature_files import FeatureSpec
from stream_engine.counts import ACCUMULATORS, DEFAULT_ACCUMULATORS, Forgetting
from stream_engine.data import logs
from stream_engine.data.comparisons import READABLE_TYPES
from stream_engine.formats import INPUT_FORMATS
from stream_engine.formats.options import ANSWER_IS, FIRST_OF, MAX_TIME_AHEAD, PARTICIPANT_FROM, Bounds, by_field
from stream_engine.kernel_learning.auxiliary_files import KernelSpec
from stream_engine.refits import REFITS

# closed sets of words, read from the rooms that know them; a type checker cannot see into registries and reads `str`
if TYPE_CHECKING:
    AccumulatorName: TypeAlias = str
    AnswerIs: TypeAlias = str
    AnswersBy: TypeAlias = str
    EventType: TypeAlias = str
    ForgetBy: TypeAlias = str
    Format: TypeAlias = str
    LogFormat: TypeAlias = str
    LogLevel: TypeAlias = str
    OnOffsetLoss: TypeAlias = str
    ParticipantFrom: TypeAlias = str
    Refit: TypeAlias = str
else:
    AccumulatorName = Literal[tuple(ACCUMULATORS)]
    AnswerIs = Literal[ANSWER_IS]
    AnswersBy = Literal[tuple(FIRST_OF)]
    EventType = Literal[READABLE_TYPES]
    ForgetBy = Literal["count", "time"]
    Format = Literal[INPUT_FORMATS]
    LogFormat = Literal[logs.FORMATS]
    LogLevel = Literal[tuple(logs.LEVELS)]
    OnOffsetLoss = Literal[ON_OFFSET_LOSS]
    ParticipantFrom = Literal[PARTICIPANT_FROM]
    Refit = Literal[tuple(REFITS)]

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

    type_: EventType | None = None  # type of all events; not set: each event has its own
    columns: dict[str, str] = {}  # field -> column(s) in the input, several separated by "|"
    where: dict[str, str] = {}  # read only events with this value in the field; "phase!=" and "rt>" compare
    format: Format | None = None  # format of the input; not set: by file name
    delimiter: str | None = None  # column separator in text tables; not set: detected from the header
    encoding: str | None = None  # text encoding; not set: UTF-8, or UTF-16 if the file has a byte order mark
    header: bool = True  # whether the first row names the columns; if not, they are named 1, 2, 3
    skip_rows: _Count = 0  # number of lines to skip before the header
    answers_by: AnswersBy = "name"  # how odd, central, chosen name an object; position: from 1, index: from 0
    answer_is: AnswerIs = "nearer"  # which object an answer names
    separator: str | None = None  # separator of lists in cells; not set: a bar, or lists as programs write them
    participant_from: ParticipantFrom | None = None  # file: each file is one participant, named like it
    drop_duplicates: bool = False  # whether a response that was sent twice counts once
    codes: dict[str, dict[str, str]] = {}  # field of an answer -> code -> position, or name of a column
    labels: str | None = None  # table of labels with the columns object and label
    labels_columns: dict[str, str] = {}  # field -> column in the table of labels
    max_message_bytes: Annotated[int, Meta(ge=1024)] = Bounds().max_bytes  # size limit of an unpacked message or row
    max_time_ahead: _Seconds = MAX_TIME_AHEAD  # seconds that an event's time may be ahead of the clock; later: rejected
    count_copies: bool = False  # whether to read copies of files that were already read
    max_reject_ratio: Annotated[float, Meta(ge=0, le=1)] = 0.5  # largest share of rejects before a first snapshot
    start: str = "none"  # Kafka: where a first start begins: earliest, latest, 2026-11-01T00:00Z; none: must be set
    start_partitions: dict[str, str] = {}  # Kafka: partition as "TOPIC/NUMBER" -> start, where it differs from `start`
    on_offset_loss: OnOffsetLoss = "fail"  # Kafka: what to do if the next offset has expired
    schema: str | None = None  # Kafka: Avro schema of the messages (.avsc); with a registry, the one to read them as
    shard: str | None = None  # Kafka: share of the partitions that this process reads, "i/n"

    def __post_init__(self):
        structs.force_setattr(self, "columns", by_field(self.columns))
        for start in (self.start, *self.start_partitions.values()):
            start_of(start)


class RegistrySettings(_Section, frozen=True):
    """The schema registry of a topic of Avro or JSON Schema, in the wire format of Confluent. Secrets are given by
    reference: `{ env = "NAME" }` or `{ file = "PATH" }`."""

    url: str | None = None  # address, http://HOST:PORT or https://HOST:PORT; not set: none
    user: str | None = None  # user, if it asks for one
    password: str | None = None  # password of the user
    ca: str | None = None  # PEM file of the authority of its certificate; not set: the system's authorities


class SnapshotSettings(_Section, frozen=True):
    """When to take snapshots, and how many to retain."""

    every: _Count | None = None  # comparisons between snapshots; 0: none; not set: a quarter more, at least 10 million
    interval: _Seconds = 60.0  # seconds between snapshots, if anything was read; 0: none by time
    keep: _Positive = 3  # number of snapshots to retain


class RefitSettings(_Section, frozen=True):
    """Which refits run on published snapshots (`kinds = []`: none); `params` holds a table per refit."""

    kinds: tuple[Refit, ...] = (
        "sdp_clustering",
        "embedding",
        "clusters",
        "triplet_boost",
        "classify",
    )  # the last two need labels
    also: tuple[Refit, ...] = ()  # refits to run in addition to `kinds`
    seed: int = 0  # random seed of all refits
    params: dict[str, dict[str, Any]] = {}  # refit -> parameter -> value, as `[refits.params.KIND]`

    @property
    def all_kinds(self) -> tuple[str, ...]:
        """Every kind that runs."""
        return tuple(dict.fromkeys((*self.kinds, *self.also)))


class CountSettings(_Section, frozen=True):
    """Where a run stores its counts; does not affect their values."""

    on_disk_above: _Count = 0  # larger arrays (in bytes) are stored in DIR/scratch; 0: all arrays in memory


class SigningSettings(_Section, frozen=True):
    """The key with which snapshots and artifacts are signed and verified."""

    key: str | None = None  # { env = "NAME" } or { file = "PATH" }; not set: STREAM_ENGINE_STATE_KEY
    accept_unsigned: bool = False  # whether to accept unsigned files; new files are signed


class DriftSettings(_Section, frozen=True):
    """Detection of drift: if predictions get worse, an alarm triggers a snapshot, and thus refits."""

    enabled: bool = True  # whether to detect drift


class ForgettingSettings(_Section, frozen=True):
    """How the accumulators `adds3_decayed`, `triplet_counts_decayed` and `window` forget: `by` the count of triplets or
    the time of events; `half_life` and `window` in triplets or seconds."""

    by: ForgetBy = Forgetting().by  # number of triplets, or time of events
    half_life: Annotated[float, Meta(gt=0)] = Forgetting().half_life  # triplets or seconds until an answer counts half
    window: Annotated[float, Meta(gt=0)] = Forgetting().window  # length of the window in triplets or seconds

    def __post_init__(self):
        if self.by == "count" and self.window < 1:
            raise ValueError(f"window: got {self.window:g} triplets, expected at least 1")


class OnlineSettings(_Section, frozen=True):
    """An embedding that is updated between fits, and restarts from each published fit; not part of the counts."""

    enabled: bool = False  # whether to maintain an online embedding


class HttpSettings(_Section, frozen=True):
    """Access to the HTTP server, whose address is `listen`. Secrets are given by reference: `{ env = "NAME" }` or
    `{ file = "PATH" }`."""

    token: _Token | None = None  # required for all paths except the probes; not set: no authentication
    admin_token: _Token | None = None  # required for POST /admin/...; not set: no POST /admin/...
    tls_certificate: str | None = None  # PEM file of the certificate chain; not set: no TLS
    tls_key: str | None = None  # PEM file of the certificate's key
    allowed_hosts: tuple[str, ...] = ()  # host names of this server in addition to its address
    show_workers: bool = False  # whether the live page shows individual workers
    objects: str | None = None  # pictures for the live page: a folder, or a table object,image,text

    def __post_init__(self):
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key: got one of them, expected both or neither")


class LogSettings(_Section, frozen=True):
    """Log lines on standard error or in a file."""

    format: LogFormat = "text"  # format of log lines
    level: LogLevel | None = None  # lowest level to log; default: info, on a terminal only warnings
    file: str | None = None  # file to append to; SIGHUP opens it again; not set: standard error


class Settings(_Section, frozen=True):
    """Everything that can be set, with its default."""

    source: tuple[str, ...] = ()  # files, glob patterns, `-`, kafka://HOST:PORT/TOPIC, s3://, gs:// or https://
    state: str | None = None  # state directory; required here or on the command line
    follow: bool = False  # whether to keep reading files as they grow
    listen: str | None = None  # address of the HTTP server, HOST:PORT; not set: no server
    memory_gb: Annotated[float, Meta(gt=0)] | None = None  # memory limit of the process and its refits
    dead_letters: str | None = None  # folder of rejected events; not set: DIR/dead_letters
    dead_letters_keep_bytes: _Count = 10_000_000_000  # size limit of the folder; the oldest are removed; 0: none
    accumulators: tuple[AccumulatorName, ...] = DEFAULT_ACCUMULATORS  # statistics of a new state
    guard: bool = True  # whether to maintain the partial order; must not change for a state
    input: Input = Input()
    schema_registry: RegistrySettings = RegistrySettings()
    snapshot: SnapshotSettings = SnapshotSettings()
    refits: RefitSettings = RefitSettings()
    kernels: dict[str, KernelSpec] = {}  # auxiliary kernels for refits
    features: dict[str, FeatureSpec] = {}  # feature sets: for the refit alignment, and predictions before learning
    counts: CountSettings = CountSettings()
    signing: SigningSettings = SigningSettings()
    drift: DriftSettings = DriftSettings()
    online: OnlineSettings = OnlineSettings()
    forgetting: ForgettingSettings = ForgettingSettings()
    http: HttpSettings = HttpSettings()
    log: LogSettings = LogSettings()
    publish: dict[str, str] = {}  # table of an export -> kafka://HOST:PORT/TOPIC or jsonl://FILE with its newest rows
    kafka: dict[str, Any] = field(default_factory=dict)  # options of the Kafka client, under the client's names
