"""From the bytes of files to ids, without learning: M comparisons per CPU second of each file, the second of two turns.

`python -m tests.benchmarks.decoding FILE...`; the digest of all ids and names shows that two versions say the same.
"""

import argparse
import time
from hashlib import sha256

from connectors import open_source
from stream_engine.formats.options import EventOptions
from stream_engine.service.ingest import Ingest
from stream_engine.state.engine import Engine


def decoded(path: str) -> tuple[int, float, str]:
    """Comparisons, CPU seconds of decoding and numbering, digest."""
    engine, ingest, source = Engine((), False), Ingest(EventOptions()), open_source(path, {})
    comparisons, seconds, digest = 0, 0.0, sha256()
    while not source.finished():
        for record in source.poll(0.1):
            began = time.process_time()
            batch = engine.batch(ingest.read(record)[0])
            seconds += time.process_time() - began
            comparisons += len(batch.triplets) + len(batch.quadruplets)
            digest.update(batch.triplets.tobytes() + batch.quadruplets.tobytes())
    source.close()
    digest.update(repr(list(engine.objects.names)).encode())
    return comparisons, seconds, digest.hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    for path in parser.parse_args().files:
        decoded(path)
        comparisons, seconds, digest = decoded(path)
        print(f"{path}: {comparisons / seconds / 1e6:.2f} M comparisons/CPU-s, {digest}")


if __name__ == "__main__":
    main()
