"""The long-running process: main loop, settings, snapshot triggers, refit workers, metrics, HTTP, logs."""
