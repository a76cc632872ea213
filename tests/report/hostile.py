"""A run in which everything a model, a tool or a file's author can say is hostile."""

from __future__ import annotations

from harness.schema.messages import Message, Text, ToolCall, ToolResult, VendorBlock
from harness.schema.results import Score
from tests.report.sample_run import SampleRun, sample_run

ELSEWHERE = "http://report-test.invalid"
WORDS = (
    "<script>document.title='owned'</script>",
    f"<img src={ELSEWHERE}/x.png onerror=\"document.title='owned'\">",
    f"</pre></article></template></style></script><iframe src='{ELSEWHERE}'></iframe>",
    '" onmouseover="document.title=\'owned\'" autofocus onfocus="document.title=1',
    f"<style>@import '{ELSEWHERE}/x.css'; body {{ display: none }}</style>",
    f"<meta http-equiv=refresh content='0;url={ELSEWHERE}'><base href='{ELSEWHERE}'>",
    "javascript:document.title='owned'",
    f"[link](javascript:alert(1)) {ELSEWHERE}/plain?a=1&copy;&lt;b&gt;",
    "{{ 7 * 7 }}{% raw %}",
    "--><!-- ]]> <![CDATA[",
    "\x00\x1b[31mred\x07 \u202egnirts\u202c \u200b\ufeff \ud800 \r\n\x85",
)
HOSTILE = "\n".join(WORDS)


def hostile_run() -> SampleRun:
    """Two tasks, two variants, all names, texts and explanations poisoned."""
    sample = sample_run(
        tasks=("clean-names", "contact-card"), variants=("baseline", "skills"), repeats=1
    )
    name = "'\"><script>document.title='owned'</script>%2e #x"
    variants = tuple(
        variant.model_copy(update={"name": variant.name + name, "description": HOSTILE})
        for variant in sample.run.variants
    )
    trials, trajectories = [], {}
    for trial in sample.trials:
        poisoned = trial.model_copy(
            update={
                "trial_id": trial.trial_id + name,
                "task": trial.task + name,
                "variant": trial.variant + name,
                "error": HOSTILE,
                "tools_used": (HOSTILE,),
                "response_models": (HOSTILE,),
                "cassette": HOSTILE,
                "scores": {HOSTILE: Score(value=HOSTILE, explanation=HOSTILE)},
            }
        )
        trials.append(poisoned)
        trajectories[poisoned.trial_id] = sample.trajectories[trial.trial_id].model_copy(
            update={
                "system": HOSTILE,
                "output_seen": True,
                "output": {HOSTILE: [HOSTILE]},
                "messages": hostile_messages(),
            }
        )
    run = sample.run.model_copy(
        update={
            "run_id": HOSTILE,
            "suite": HOSTILE,
            "description": HOSTILE,
            "overrides": (HOSTILE,),
            "git_revision": HOSTILE,
            "versions": {HOSTILE: HOSTILE},
            "host": {HOSTILE: HOSTILE},
            "tasks": {trial.task: "digest" for trial in trials},
            "variants": variants,
        }
    )
    return SampleRun(run, tuple(trials), trajectories)


def hostile_messages() -> tuple[Message, ...]:
    call = ToolCall(id=HOSTILE, name=HOSTILE, arguments='{"' + "a" * 9 + '": "</pre><script>"}')
    broken = ToolCall(id="2", name=HOSTILE, arguments=HOSTILE)
    vendor = VendorBlock(dialect=HOSTILE, data={"type": HOSTILE, "thinking": HOSTILE})
    return (
        Message(role="user", content=(Text(text=HOSTILE),)),
        Message(role="assistant", content=(Text(text=HOSTILE), vendor, call, broken)),
        Message(
            role="user",
            content=(
                ToolResult(call_id=HOSTILE, name=HOSTILE, content=HOSTILE),
                ToolResult(call_id="2", name=HOSTILE, content=HOSTILE, is_error=True),
                ToolResult(call_id="never called", name=HOSTILE, content=HOSTILE),
                Text(text=HOSTILE),
            ),
        ),
    )
