"""Closed sets of words that settings may hold, each read from the room that knows them.

At run time they are `Literal` types, which msgspec checks; a type checker cannot see into registries and reads `str`.
"""

from typing import TYPE_CHECKING, Literal, TypeAlias

from connectors.kafka.start_offsets import ON_OFFSET_LOSS, START_MODES
from stream_engine.accumulators import ACCUMULATORS
from stream_engine.data.comparisons import EVENT_TYPES
from stream_engine.formats import FORMATS
from stream_engine.formats.options import FIRST_OF
from stream_engine.refits import REFITS
from stream_engine.service import logs

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
