"""Writes the model folder in Hugging Face's layout; check_model.py reads it back through transformers."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from model import Config, Qwen3
from tokens import END_OF_TEXT, TURN_END, TURN_START

CHAT_TEMPLATE = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_weights(folder: Path, model: Qwen3) -> None:
    """The output layer is the embedding, so only that is stored."""
    weights = {
        name: tensor.detach().to(torch.bfloat16).cpu().contiguous()
        for name, tensor in model.state_dict().items()
    }
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})


def write_folder(folder: Path, tokenizer: Tokenizer, config: Config) -> None:
    """Everything but the weights."""
    end, turn_end = tokenizer.token_to_id(END_OF_TEXT), tokenizer.token_to_id(TURN_END)
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(folder / "config.json", config.to_hugging_face(eos=turn_end, pad=end))
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "add_bos_token": False,
            "add_prefix_space": False,
            "bos_token": None,
            "eos_token": TURN_END,
            "pad_token": END_OF_TEXT,
            "unk_token": None,
            "additional_special_tokens": [TURN_START, TURN_END],
            "clean_up_tokenization_spaces": False,
            "model_max_length": config.max_position_embeddings,
        },
    )
    write_json(
        folder / "generation_config.json",
        {
            "do_sample": True,
            "temperature": 0.6,
            "top_p": 0.9,
            "repetition_penalty": 1.0,
            "eos_token_id": [turn_end, end],
            "pad_token_id": end,
        },
    )
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE.rstrip("\n"))
