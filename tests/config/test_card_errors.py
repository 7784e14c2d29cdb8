"""What a provider's own words mean: the cards' patterns, read as the chain reads them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentx.chain.classify import classify
from agentx.config.cards import read_cards
from agentx.config.links import Provider
from agentx.errors import RequestFailed

SAID = [
    ("openai", 429, '{"error":{"code":"insufficient_quota","message":"You exceeded your quota"}}', "quota"),
    ("openai", 429, '{"error":{"type":"usage_limit_reached","resets_at":1764460800}}', "quota"),
    ("openai", 503, '{"error":{"code":"slow_down"}}', "overloaded"),
    ("openai", 401, '{"error":{"code":"invalid_api_key"}}', "auth"),
    ("anthropic", 400, "Your credit balance is too low to access the Anthropic API.", "quota"),
    ("anthropic", 400, "You have reached your specified API usage limits.", "quota"),
    ("anthropic", 500, 'AnthropicException - {"type":"error","error":{"type":"overloaded_error"}}', "overloaded"),
    ("gemini", 400, '{"error":{"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}', "auth"),
    ("gemini", 429, '"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"', "quota"),
    ("openrouter", 403, "Key limit exceeded (total limit).", "quota"),
    ("openrouter", 402, "Insufficient credits. Add more.", "quota"),
    ("openrouter", 404, "No endpoints found for x/y.", "not_found"),
    ("groq", 413, "Request too large for model `x` on tokens per minute (TPM): Limit 6000", "rate_limit"),
    ("groq", 429, "Rate limit reached on tokens per day (TPD): Limit 100000", "quota"),
    ("mistral", 429, "Service tier capacity exceeded for this model.", "overloaded"),
    ("deepseek", 402, "Insufficient Balance", "quota"),
    ("ollama", 404, '{"error":"model \\"nope\\" not found, try pulling it first"}', "not_found"),
    ("ollama", 503, "server busy, please try again.  maximum pending requests exceeded", "overloaded"),
    ("llamacpp", 500, "Context size has been exceeded.", "server"),
    ("llamacpp", 503, "Loading model", "overloaded"),
    ("llamacpp", 400, "model 'x' not found", "not_found"),
    ("vllm", 404, "The model `x` does not exist.", "not_found"),
    ("litellm-proxy", 400, "Budget has been exceeded! Current cost: 1, Max budget: 1", "quota"),
    ("litellm-proxy", 400, "Invalid model name passed in model=nope", "not_found"),
    ("azure", 404, '{"error":{"code":"DeploymentNotFound","message":"The API deployment for this"}}', "not_found"),
    ("azure", 429, "Too Many Requests: System is experiencing high demand", "overloaded"),
    ("azure", 429, "Requests to the ChatCompletions_Create Operation have exceeded call rate limit", "rate_limit"),
    ("bedrock", 429, "Too many tokens, please wait before trying again.", "rate_limit"),
    ("bedrock", 400, "ServiceQuotaExceededException: your request exceeds the service quota", "quota"),
    ("bedrock", 400, "The provided model identifier is invalid.", "not_found"),
    ("bedrock", 403, "AccessDeniedException: not authorized to perform bedrock:InvokeModel", "auth"),
    ("vertex", 429, '{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}', "rate_limit"),
    ("vertex", None, "Your default credentials were not found.", "auth"),
    ("xai", 429, "Your team t has either used all available credits or reached its spending limit.", "quota"),
    ("xai", 403, '{"code":"x","error":"You have run out of credits or need a Grok subscription."}', "quota"),
    ("xai", 400, '{"code":"Client specified an invalid argument","error":"Incorrect API key provided"}', "auth"),
    ("moonshot", 429, '{"error":{"type":"engine_overloaded_error","message":"overloaded"}}', "overloaded"),
    ("moonshot", 429, '{"error":{"type":"exceeded_current_quota_error","message":"suspended"}}', "quota"),
    ("moonshot", 429, '{"error":{"type":"rate_limit_reached_error","message":"RPM"}}', "rate_limit"),
    ("moonshot", 404, "Not found the model kimi-k9 or Permission denied", "not_found"),
    ("zai", 429, '{"error":{"code":"1113","message":"Insufficient balance or no resource package."}}', "quota"),
    ("zai", 429, '{"error":{"code":"1308","message":"Usage limit reached for 5 hour"}}', "quota"),
    ("zai", 429, '{"error":{"code":"1305","message":"The service may be temporarily overloaded"}}', "overloaded"),
    ("zai", 429, '{"error":{"code":"1302","message":"High concurrency usage"}}', "rate_limit"),
    ("zai", 400, '{"error":{"code":1211,"message":"Unknown Model, please check the model code."}}', "not_found"),
    ("zai", 400, '{"error":{"code":"1261","message":"Prompt exceeds max length"}}', "overflow"),
    ("minimax", 500, '{"type":"error","error":{"message":"insufficient balance (1008)"}}', "quota"),
    ("minimax", 429, "usage limit exceeded, 5-hour usage limit reached (2056)", "quota"),
    ("minimax", 429, "rate limit (1002)", "rate_limit"),
    ("minimax", 400, "invalid params, context window exceeds limit (2013)", "overflow"),
    ("qwen", 429, '{"error":{"code":"insufficient_quota","message":"Allocated quota exceeded"}}', "rate_limit"),
    ("qwen", 400, '{"error":{"code":"Arrearage","message":"Access denied"}}', "quota"),
    ("qwen", 403, "The free tier of the model has been exhausted.", "quota"),
    ("qwen", 404, '{"error":{"code":"model_not_found","message":"The model `q` does not exist"}}', "not_found"),
    ("fireworks", 412, '{"error":{"code":"PRECONDITION_FAILED","message":"Account a is suspended"}}', "quota"),
    ("fireworks", 404, "Model not found, inaccessible, and/or not deployed", "not_found"),
    ("together", 402, '{"error":{"type":"credit_limit","message":"Credit limit exceeded."}}', "quota"),
    ("together", 503, "The server is overloaded or not ready yet.", "overloaded"),
    ("together", 404, '{"error":{"code":"model_not_available","message":"Unable to access model"}}', "not_found"),
    ("cerebras", 429, "Tokens per minute limit exceeded - too many tokens processed.", "rate_limit"),
    ("cerebras", 429, "Tokens per day limit exceeded - too many tokens processed.", "quota"),
    ("cerebras", 429, '{"code":"queue_exceeded","message":"We are experiencing high traffic"}', "overloaded"),
    ("huggingface", 402, "You have exceeded your monthly included credits for Inference Providers.", "quota"),
    ("huggingface", 400, "The requested model 'a/b' is not supported by any provider you have on.", "not_found"),
    ("vercel", 403, "Free credits temporarily have restricted access due to abuse.", "quota"),
    ("deepinfra", 429, '{"error":{"message":"Model busy, retry later"}}', "overloaded"),
    ("nvidia", 404, "Function '23d4': Not found for account 'Qaw'", "not_found"),
    ("copilot", 402, '{"message":"You have no quota","code":"quota_exceeded"}', "quota"),
    ("copilot", 400, '{"error":{"code":"model_not_supported","message":"not supported"}}', "not_found"),
    ("codex", 429, '{"error":{"type":"usage_limit_reached","resets_at":1764460800}}', "quota"),
    ("codex", 400, "ChatGPT device-code login needs a human and cannot run inside an event loop", "auth"),
]


@pytest.mark.parametrize(("name", "status", "text", "meant"), SAID, ids=[f"{n}-{t[:24]}" for n, _, t, _ in SAID])
def test_a_providers_own_words_mean_what_the_card_says(
    tmp_path: Path, name: str, status: int | None, text: str, meant: str
) -> None:
    """Not only does a pattern fit: the chain, which reads cards first, comes to that class."""
    patterns = read_cards(tmp_path)[name].patterns()
    fits = any(re.search(p.match, text, re.IGNORECASE) for p in patterns if p.status in (None, status))
    assert fits or meant == "overflow" or '"code":' in text, "the card has a word for it"
    provider = Provider(name=name, card=name, wire="openai", errors=patterns)
    failure = RequestFailed("x", phase="status", status=status or 401, body=text)
    assert classify(failure, provider, now=0).error_class == meant


OVERFLOWS = [
    "request (8226 tokens) exceeds the available context size (4096 tokens), try increasing it",
    "prompt is too long: 210194 tokens > 200000 maximum",
    "This model's maximum context length is 4096 tokens. However, your messages resulted in 9000 tokens",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "This model's maximum prompt length is 131072 but the request contains 131100 tokens.",
    "Current length is 9000 while limit is 8192",
    "prompt token count of 391491 exceeds the limit of 128000",
    "Your request exceeded model token limit: 262144 (requested: 270000)",
    "Range of input length should be [1, 129024]",
    "Input is too long for requested model",
]


@pytest.mark.parametrize("text", OVERFLOWS)
def test_no_card_takes_an_overflow_for_something_else(tmp_path: Path, text: str) -> None:
    """Card patterns are read first: one that fits too much would hide a window."""
    for name, card in read_cards(tmp_path).items():
        for pattern in card.patterns():
            assert not re.search(pattern.match, text, re.IGNORECASE), (name, pattern)
