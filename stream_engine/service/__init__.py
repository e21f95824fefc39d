"""The long-running process: main loop, snapshot triggers, refit workers, metrics, HTTP, repair."""
