"""Reads the written folder through transformers: same logits as model.py, samples, the test vectors.

The vectors are the reference for other readers of the folder: ids from the `tokenizers` library, greedy
continuations from transformers' Qwen3ForCausalLM in float32 on the CPU.
"""

import argparse
import json
import os
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

from artefacts import write_json
from model import Config, Qwen3

TEXTS = [
    "",
    "a",
    " ",
    "\n",
    "Hello, world!",
    "The quick brown fox jumps over the lazy dog.",
    "What does the word granary mean?",
    "It's the farmer's barn; we'll see, I'm sure they'd say you've won.",
    "IT'S LOUD AND YOU'LL HEAR IT",
    "1234567890 3.14159 1,000,000 2024-02-29",
    "  two spaces before, two after  ",
    "tabs\tand\ttabs\t\tand more",
    "line one\nline two\n\nline four\n",
    "trailing newlines\n\n\n",
    "\r\nwindows\r\nlines\r\n",
    "        eight spaces",
    "a     b          c",
    " \n \n\t \n",
    "word" * 12,
    "antidisestablishmentarianism",
    "def main():\n    return [x ** 2 for x in range(10)]\n",
    '{"key": [1, 2.5e-3, null, true], "s": "\\u00e9\\n"}',
    "https://example.org/path?query=1&other=two#part",
    "!?!?...---***///\\\\\\",
    "(brackets) [and] {braces} <angles>",
    "caf\u00e9 na\u00efve \u00fcber stra\u00dfe \u00e6\u00f8\u00e5",
    "cafe\u0301 with a combining accent",
    "\u201cquotes\u201d \u2018single\u2019 \u2013 \u2014 \u2026",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002",
    "\u3053\u3093\u306b\u3061\u306f",
    "\uc548\ub155\ud558\uc138\uc694",
    "\u0645\u0631\u062d\u0628\u0627",
    "\u05e9\u05dc\u05d5\u05dd",
    "\U0001f600 \U0001f44d\U0001f3fd \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "mixed \U0001f33e grain\u00a0and\u2003wide\u3000spaces",
    "\u0000\u0001\u007f control",
    "\ufeffbyte order mark",
    "\u00bd \u00b2 \u2163 \u0663 numbers of other kinds",
    "x\u00b2 + y\u00b2 = z\u00b2 \u221e \u2248 \u2260",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "<|endoftext|>",
    "a<|im_end|>b <|im_end|> c",
    "<|im_start|><|im_start|>",
    "<|im_star|> <|not_a_special|> <| im_end |>",
    "<|endoftext|>\n\n<|im_end|>  \n",
    "Once upon a time there was a fox called Tom, who lived in an old mill.",
    "In the beginning God created",
]
CHATS = [
    [{"role": "user", "content": "Who are you?"}],
    [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "Tell me a story about a fox."},
    ],
    [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hello! How can I help you?"},
        {"role": "user", "content": "What is a lantern?"},
    ],
]


def asked(question: str) -> str:
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


GREEDY_PROMPTS = [
    asked("What are the days of the week?"),
    asked("Tell me a story about a fox."),
    asked("What is a prefix cache?"),
    "Once upon a time there was a proud",
    "It was a cold morning in winter, and the old man",
]
SAMPLE_PROMPTS = [
    asked("Who are you?"),
    asked("What is a lighthouse?"),
    asked("Tell me a story about an owl."),
    "She looked at him and",
    asked("What does happy mean?"),
    "The most important thing about a good cache is",
]


@torch.no_grad()
def greedy(reference, tokenizer: Tokenizer, prompt: str, count: int) -> dict:
    """Each step's best id, its logit and its lead over the second; no cache takes part."""
    ids = prompt_ids = tokenizer.encode(prompt, add_special_tokens=False).ids
    logits, margins = [], []
    for _ in range(count):
        best = reference(torch.tensor([ids])).logits[0, -1].float().topk(2)
        ids = [*ids, best.indices[0].item()]
        logits.append(round(best.values[0].item(), 5))
        margins.append(round((best.values[0] - best.values[1]).item(), 5))
    made = ids[len(prompt_ids) :]
    return {
        "prompt": prompt,
        "promptIds": prompt_ids,
        "ids": made,
        "text": tokenizer.decode(made, skip_special_tokens=False),
        "logits": logits,
        "margins": margins,
    }


@torch.no_grad()
def compare(reference, folder: Path, tokenizer: Tokenizer) -> float:
    own = Qwen3(Config()).eval()
    own.load_state_dict(
        {name: tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()}
    )
    ids = torch.tensor([tokenizer.encode(GREEDY_PROMPTS[1] + TEXTS[5] * 12, add_special_tokens=False).ids])
    return (own(ids) - reference(ids).logits).abs().max().item()


def rendered_chats(auto, tokenizer: Tokenizer) -> list[dict]:
    chats = []
    for messages in CHATS:
        text = auto.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        chats.append(
            {"messages": messages, "text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids}
        )
    return chats


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("OUT", "build/train-demo/model")))
    parser.add_argument("--samples", type=int, default=len(SAMPLE_PROMPTS))
    parser.add_argument("--vectors", type=Path, help="default: vectors.json in the folder")
    options = parser.parse_args()
    torch.manual_seed(1)
    tokenizer = Tokenizer.from_file(str(options.folder / "tokenizer.json"))
    reference = AutoModelForCausalLM.from_pretrained(
        options.folder, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    difference = compare(reference, options.folder, tokenizer)
    print(f"{type(reference).__name__}: logits differ from model.py's by {difference:.2e}")
    auto = AutoTokenizer.from_pretrained(options.folder)
    texts = [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids} for text in TEXTS]
    same = [auto.encode(text["text"], add_special_tokens=False) == text["ids"] for text in texts]
    print(f"{type(auto).__name__}: {sum(same)} of {len(same)} texts have the ids of the tokenizers library")
    whole = [tokenizer.decode(text["ids"], skip_special_tokens=False) == text["text"] for text in texts]
    print(f"{sum(whole)} of {len(whole)} texts decode to themselves")
    write_json(
        options.vectors or options.folder / "vectors.json",
        {
            "texts": texts,
            "chats": rendered_chats(auto, tokenizer),
            "greedy": [greedy(reference, tokenizer, prompt, 16) for prompt in GREEDY_PROMPTS],
        },
    )
    print("generation config:", json.loads(reference.generation_config.to_json_string(use_diff=True)))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    reference.to(device)
    for prompt in SAMPLE_PROMPTS[: options.samples]:
        ids = torch.tensor([tokenizer.encode(prompt, add_special_tokens=False).ids], device=device)
        made = reference.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=True,
            temperature=0.7,
            top_p=0.9,
            max_new_tokens=130,
        )
        print("-----\n" + tokenizer.decode(made[0].tolist(), skip_special_tokens=False), flush=True)


if __name__ == "__main__":
    main()
