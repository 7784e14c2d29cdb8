from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentx.testing.conversations import conversation27
from agentx.testing.counting import IMAGE, PER_MESSAGE, count_prompt, count_text, head, normal, tail


def test_the_27_messages_count_about_what_a_real_model_counts() -> None:
    """Qwen 0.5B on llama.cpp and Ollama counts 5,454 to 5,459."""
    messages = conversation27()
    assert len(messages) == 27
    assert sum(len(message["content"]) for message in messages) // 4 == 6_175
    assert abs(count_prompt(messages) - 5_454) < 150


def test_tools_system_prompt_and_images_count() -> None:
    message = {"role": "system", "content": "one two three"}
    tool = {"type": "function", "function": {"name": "f"}}
    picture = {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url"}]}
    alone = count_prompt([message])
    assert alone == 3 + PER_MESSAGE
    assert count_prompt([message], [tool]) > alone
    assert count_prompt(normal([picture])) == PER_MESSAGE + 1 + IMAGE


@given(st.text(), st.integers(0, 50))
def test_head_and_tail_have_the_asked_number_of_tokens(text: str, tokens: int) -> None:
    wanted = min(tokens, count_text(text))
    assert count_text(head(text, tokens)) == wanted
    assert text.endswith(tail(text, tokens))
    assert text.startswith(head(text, tokens))


def test_both_protocols_have_one_normal_form() -> None:
    """Ollama gives arguments as an object and names the tool; OpenAI gives text and an id."""
    openai = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": '{"a": 1}'}}],
        },
        {"role": "tool", "content": "x", "tool_call_id": "c1", "name": "f"},
    ]
    ollama = [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": {"a": 1}}}],
        },
        {"role": "tool", "content": "x", "tool_call_id": "c1", "tool_name": "f"},
    ]
    assert normal(openai) == normal(ollama)
