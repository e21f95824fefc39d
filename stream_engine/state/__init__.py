"""What a state directory holds, and the fold that makes it: engine, object index, labels, snapshots, artifacts."""
