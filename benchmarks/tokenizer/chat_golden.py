"""Writes model/chat/testdata/golden.jsonl: conversations and what the published chat templates make
of them, or that they refuse them. The templates are those in the package trl, rendered by jinja2 as
transformers does it.

    chat_golden.py OUT.jsonl
"""

import importlib.util
import json
import pathlib
import random
import sys

from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

TEMPLATES = {"qwen3": "qwen3", "qwen3.5": "qwen3_5_think", "qwen3.5-small": "qwen3_5_nothink"}

PARTS = [
    "How many singers are there?", "SELECT count(*) FROM singer", " ", "\n", "\n\n", "\t", "\x1c", "\u00a0", "\u3000", "\u200b",
    "naïve", "漢字 🙂", "<think>", "</think>", "<think>\n", "\n</think>\n\n", "<tool_response>", "</tool_response>", "<|im_end|>",
    "<|im_start|>system\n", "</think", "schema: t(a, b)", "/no_think",
]


def text(r):
    return "".join(r.choice(PARTS) for _ in range(r.choice([0, 1, 1, 2, 3, 5])))


def conversation(r):
    messages = [{"role": "system", "content": text(r)}] if r.random() < 0.4 else []
    for _ in range(r.choice([0, 1, 1, 1, 2, 3])):
        roles = r.choice([["user", "assistant"], ["user"], ["assistant"], ["user", "assistant", "assistant"], ["user", "user"]])
        messages += [{"role": role, "content": text(r)} for role in roles]
    if r.random() < 0.1:
        messages.insert(r.randrange(len(messages) + 1), {"role": "system", "content": text(r)})
    for m in messages:
        if m["role"] == "assistant" and r.random() < 0.3:
            m["reasoning_content"] = text(r) or "x"
        if r.random() < 0.05:
            m["content"] = "<tool_response>" + m["content"] + "</tool_response>"
    return messages


def refuse(message):
    raise TemplateError(message)


def main():
    folder = pathlib.Path(importlib.util.find_spec("trl").origin).parent / "chat_templates"
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = refuse
    templates = {name: environment.from_string((folder / f"{file}.jinja").read_text()) for name, file in TEMPLATES.items()}
    r = random.Random(35)
    with open(sys.argv[1], "w") as out:
        for _ in range(100):
            messages = conversation(r)
            options = {"add_generation_prompt": r.random() < 0.6}
            thinking = r.choice([None, True, False])
            if thinking is not None:
                options["enable_thinking"] = thinking
            line = {"messages": messages, **options, "want": {}}
            for name, template in templates.items():
                try:
                    line["want"][name] = template.render(messages=messages, **options)
                except TemplateError:
                    line["want"][name] = None
            out.write(json.dumps(line, ensure_ascii=False) + "\n")


main()
