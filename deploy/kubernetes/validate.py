"""Validate the manifests strictly against Kubernetes' own schemas: `make manifests`. Exits with 1 if one is not valid.

Kinds of the Prometheus operator have no schema there; they are named, not passed over in silence.
"""

import sys
from pathlib import Path

import kubernetes_validate
import yaml

VERSION = "1.31"  # the pod-index label, which gives a shard its number, is on by default from 1.28


def problems(manifest: dict) -> list[str]:
    """What is wrong with a manifest, one line each."""
    where = f"{manifest['kind']} {manifest.get('metadata', {}).get('name', '')}"
    try:
        kubernetes_validate.validate(manifest, VERSION, strict=True)
    except kubernetes_validate.SchemaNotFoundError:
        print(f"{where}: no schema")
    except kubernetes_validate.ValidationError as error:
        return [f"{where}: {'.'.join(map(str, error.path))}: {error.message}"]
    else:
        print(f"{where}: valid")
    return []


def main() -> int:
    found = []
    for path in sorted(Path(__file__).parent.glob("*.yaml")):
        for manifest in yaml.safe_load_all(path.read_text()):
            found += [f"{path.name}: {problem}" for problem in problems(manifest)]
    print("\n".join(found), file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
