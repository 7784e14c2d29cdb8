"""The file that `agentx config init` writes: everything that can be set, switched off by a comment sign."""

from __future__ import annotations

TEMPLATE = """\
## agentx.yaml: your settings. A line with one `#` shows what could stand there: take the sign off to set it.
## `agentx config check` checks this file, `agentx config show --origin` says what counts and why.
## The file beside this one tells editors what can be set (`agentx config schema` prints it again):
# yaml-language-server: $schema=./agentx.schema.json

## Models in order of preference, written `provider/model`. The first that can answer is asked.
# default_chain: overnight
# chains:
#   overnight:
#     - model: anthropic/claude-sonnet-5
#     - model: openrouter/qwen/qwen3-coder
#       max_tokens: 32000
#       max_cost: 2.00   # dollars that one job may spend on it
#     - model: ollama/qwen3:14b
#       window: 32768

## A provider of your own is a card and what differs. Keys are named, never written here.
# providers:
#   gpu-box: {card: vllm, base_url: "http://gpu-box:8000/v1", api_key_env: GPU_BOX_KEY}

## What one job may use up; null is no limit.
# limits:
#   cost: 5.00       # US dollars
#   hours: 8         # waiting included
#   turns: 400
#   tokens: null

## When a conversation is made smaller.
# compaction:
#   policy: half-window   # or three-steps, keep-recent, notes, or one of your own:
#   policies:
#     mine: {like: keep-recent, fraction: 0.7, steps: [markers, {tier: summary, above: 0.8}]}
#   background: false     # prepare summaries beside the work
#   summaries: true
#   summary_model: ollama/qwen3:4b

# shell: {timeout_seconds: 600}

## Seconds that one request may take.
# timers: {connect: 5, first: 300, idle: 120, total: 3600}  # seconds; also at a link

## When every link rests a job waits for the first that is back, as long as `limits.hours` lets it;
## `fail` ends it instead. `max_wait` is the most hours for one request.
# on_exhausted: wait
# max_wait: null

## The only tools that the model gets.
# tools: {only: [read_file, list_files, search]}
"""
