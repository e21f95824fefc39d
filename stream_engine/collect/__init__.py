"""Asking people and learning from their answers: `stream-engine collect`.

    page /ask ──POST /answers──▶ accept ──▶ answer log (synced, then 200) ◀──follows── engine (a child process)
         ◀──GET /questions── sessions ◀── question pool ◀── question maker (a child process) ◀── published snapshots

The HTTP side only appends to a log, so exactly-once is what it is for every followed file. Nothing that a participant
waits for waits for the engine or for a model: questions lie ready in memory.
"""
