"""The long-running process: the loop, its settings, triggers, refit workers, metrics, HTTP, logs."""
