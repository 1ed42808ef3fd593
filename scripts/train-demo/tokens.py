"""Trains the byte-level BPE and makes one row of token ids of the corpus, with each group's place in it."""

import json
import lzma
from collections import defaultdict
from pathlib import Path
from typing import Iterable, NamedTuple

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor

END_OF_TEXT, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIALS = [END_OF_TEXT, TURN_START, TURN_END]


class Text(NamedTuple):
    text: str
    held_out: bool


class Part(NamedTuple):
    """Documents one after another, each closed by <|endoftext|>."""

    ids: Tensor
    starts: Tensor


def read_corpus(path: Path) -> dict[str, list[Text]]:
    groups: dict[str, list[Text]] = defaultdict(list)
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            document = json.loads(line)
            groups[document["group"]].append(Text(document["text"], document["heldOut"]))
    return groups


def training_texts(groups: dict[str, list[Text]]) -> Iterable[str]:
    """Everything but most of the conversations, without the literals of the specials."""
    for group, texts in groups.items():
        for text, _ in texts[::8] if group == "chats" else texts:
            for special in SPECIALS:
                text = text.replace(special, "\n")
            yield text


def train_tokenizer(groups: dict[str, list[Text]], vocab_size: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=SPECIALS,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(training_texts(groups), trainer)
    return tokenizer


def encode(tokenizer: Tokenizer, texts: list[str]) -> Part:
    end = tokenizer.token_to_id(END_OF_TEXT)
    ids: list[Tensor] = []
    starts, at = [], 0
    for first in range(0, len(texts), 1024):
        for encoding in tokenizer.encode_batch(texts[first : first + 1024], add_special_tokens=False):
            starts.append(at)
            at += len(encoding.ids) + 1
            ids.append(torch.tensor([*encoding.ids, end], dtype=torch.int32))
    return Part(torch.cat(ids), torch.tensor(starts))


def split(tokenizer: Tokenizer, groups: dict[str, list[Text]]) -> tuple[dict[str, Part], dict[str, Part]]:
    """The training texts and the held-out ones."""
    training, held_out = {}, {}
    for group, texts in groups.items():
        training[group] = encode(tokenizer, [text.text for text in texts if not text.held_out])
        held_out[group] = encode(tokenizer, [text.text for text in texts if text.held_out])
    return training, held_out


class Sampler:
    """Draws windows on the device: a group by its weight, then a document's start or any place in it."""

    def __init__(self, parts: dict[str, Part], weights: dict[str, float], device: str) -> None:
        self.ids = torch.cat([part.ids for part in parts.values()]).to(device)
        sizes = [len(part.ids) for part in parts.values()]
        counts = [len(part.starts) for part in parts.values()]
        bases = [sum(sizes[:index]) for index in range(len(sizes))]
        self.starts = torch.cat([part.starts + base for part, base in zip(parts.values(), bases)]).to(device)
        self.weights = torch.tensor([weights[group] for group in parts], device=device)
        self.sizes = torch.tensor(sizes, device=device)
        self.bases = torch.tensor(bases, device=device)
        self.counts = torch.tensor(counts, device=device)
        self.first_starts = self.counts.cumsum(0) - self.counts

    def draw(self, rows: int, length: int) -> tuple[Tensor, Tensor]:
        device = self.ids.device
        group = torch.multinomial(self.weights, rows, replacement=True)
        chance = torch.rand(3, rows, device=device, dtype=torch.float64)
        document = self.first_starts[group] + (chance[0] * self.counts[group]).long()
        anywhere = self.bases[group] + (chance[1] * self.sizes[group]).long()
        start = torch.where(chance[2] < 0.6, self.starts[document], anywhere)
        start = start.clamp(max=len(self.ids) - length - 1)
        window = self.ids[start[:, None] + torch.arange(length + 1, device=device)].long()
        return window[:, :-1], window[:, 1:]
