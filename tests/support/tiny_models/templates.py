"""Chat templates, short versions in the style of the published ones."""

from __future__ import annotations


def chat(
    opening: str, closing: str, answer: str, *, image: str, begin: str = "", text: str = "", prelude: str = ""
) -> str:
    """A template from expressions: what opens and closes a turn, what opens an answer, and how an image is written.

    ``begin`` stands once before all turns, ``text`` is a filter for all that is said, and ``prelude`` is a statement.
    """
    return (
        prelude
        + (f"{{{{- {begin} -}}}}" if begin else "")
        + f"{{%- for message in messages -%}}{{{{- {opening} -}}}}"
        + f"{{%- if message['content'] is string -%}}{{{{- message['content']{text} -}}}}{{%- else -%}}"
        + f"{{%- for item in message['content'] -%}}{{%- if item['type'] == 'image' -%}}{{{{- {image} -}}}}"
        + f"{{%- elif item['type'] == 'text' -%}}{{{{- item['text']{text} -}}}}{{%- endif -%}}{{%- endfor -%}}"
        + f"{{%- endif -%}}{{{{- {closing} -}}}}{{%- endfor -%}}"
        + f"{{%- if add_generation_prompt -%}}{{{{- {answer} -}}}}{{%- endif -%}}"
    )


def chatml(image: str, *, answer: str = "'<|im_start|>assistant\n'", begin: str = "") -> str:
    """Turns between ``<|im_start|>`` and ``<|im_end|>``, as Qwen and many others write them."""
    opening, closing = "'<|im_start|>' + message['role'] + '\n'", "'<|im_end|>\n'"
    return chat(opening, closing, answer, image=image, begin=begin)


VICUNA = (
    "{%- for message in messages -%}"
    "{{- {'user': 'USER: ', 'assistant': 'ASSISTANT: ', 'system': ''}[message['role']] -}}"
    "{%- if message['content'] is string -%}{{- message['content'] -}}{%- else -%}"
    "{%- for item in message['content'] if item['type'] == 'image' -%}{{- '<image>\n' -}}{%- endfor -%}"
    "{%- for item in message['content'] if item['type'] == 'text' -%}{{- item['text'] -}}{%- endfor -%}"
    "{%- endif -%}{{- eos_token if message['role'] == 'assistant' else ' ' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- 'ASSISTANT:' -}}{%- endif -%}"
)
MISTRAL = chat(
    "'[INST]' if message['role'] == 'user' else ''",
    "'[/INST]' if message['role'] == 'user' else eos_token",
    "''",
    image="'[IMG]'",
    begin="bos_token",
)
IDEFICS = (
    "{{- bos_token -}}{%- for message in messages -%}{{- message['role'] | capitalize + ':' -}}"
    "{%- if message['content'] is string -%}{{- ' ' + message['content'] -}}{%- else -%}"
    "{%- if message['content'][0]['type'] == 'text' -%}{{- ' ' -}}{%- endif -%}"
    "{%- for item in message['content'] -%}{%- if item['type'] == 'image' -%}{{- '<image>' -}}"
    "{%- elif item['type'] == 'text' -%}{{- item['text'] -}}{%- endif -%}{%- endfor -%}"
    "{%- endif -%}{{- '<end_of_utterance>\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- 'Assistant:' -}}{%- endif -%}"
)
