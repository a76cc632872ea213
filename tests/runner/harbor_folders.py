"""Trial folders as Harbor writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EPISODES = [
    {"episode": 0, "prompt": "Count the lines.", "response": '{"commands": []}'},
    {"episode": 1, "prompt": "New Terminal Output:\n3", "response": "There are 3."},
]


def result(**changes: Any) -> dict[str, Any]:
    """A result.json of a trial that passed."""
    return {
        "id": "36584829-75da-458c-9d2c-a81a45ef380c",
        "task_name": "count-lines",
        "trial_name": "count-lines__AbCdEfG",
        "trial_uri": "file:///home/somebody/jobs/first/count-lines__AbCdEfG",
        "task_id": {"path": "/home/somebody/tasks/count-lines"},
        "source": None,
        "task_checksum": "c0ffee",
        "config": {
            "trials_dir": "jobs/first",
            "agent": {"model_name": "openai/tiny-1", "kwargs": {}},
        },
        "agent_info": {
            "name": "terminus-2",
            "version": "2.0.0",
            "model_info": {"name": "tiny-1", "provider": "openai"},
        },
        "agent_result": {
            "n_input_tokens": 100,
            "n_cache_tokens": 40,
            "n_output_tokens": 7,
            "cost_usd": 0.25,
        },
        "verifier_result": {"rewards": {"reward": 1.0}},
        "exception_info": None,
        "started_at": "2026-01-26T04:00:00Z",
        "finished_at": "2026-01-26T04:01:40Z",
        "agent_execution": {
            "started_at": "2026-01-26T04:00:30Z",
            "finished_at": "2026-01-26T04:01:00Z",
        },
    } | changes


def trial(folder: Path, *, story: Any = EPISODES, **changes: Any) -> Path:
    """Its folder, named as the trial is."""
    folder.mkdir(parents=True)
    given = result(trial_name=folder.name, **changes)
    (folder / "result.json").write_text(json.dumps(given))
    (folder / "trial.log").write_text("")
    if story is not None:
        (folder / "agent").mkdir()
        (folder / "agent" / "trajectory.json").write_text(json.dumps(story))
    return folder


def raised(name: str, message: str = "it went wrong") -> dict[str, str]:
    return {
        "exception_type": name,
        "exception_message": message,
        "exception_traceback": "Traceback",
        "occurred_at": "2026-01-26T04:01:00Z",
    }
