"""Builds the corpus: fetches the texts, mixes documents and conversations, writes one .jsonl.xz.

Each line is {"group", "text", "heldOut"}; train.py decides how often each group is seen. What is held out of
training is held out of the conversations too.
"""

import argparse
import collections
import json
import lzma
import re
from pathlib import Path
from random import Random
from typing import NamedTuple

import debian_texts
import wordnet
from answers import definition, sentence
from chats import TurnMaker
from debian_texts import Document

UNWANTED = re.compile(
    r"nigg|\binjun|\bnegro|\bsquaw|\bwhore|harlot|prostitut|\brape|fornicat|f[u*]ck|\bshit|genital"
    r"|\bcunt|\bjews?\b.*\bgreed",
    re.I,
)


def clean(document: Document) -> Document:
    """Slurs and obscenities are left out paragraph by paragraph: a demo should not repeat them."""
    return document._replace(paragraphs=[p for p in document.paragraphs if not UNWANTED.search(p)])


def reads_as_prose(document: Document) -> Document:
    """Without lists of names, abbreviations and figures: long genealogies, product names, tables."""

    def mostly_words(paragraph: str) -> bool:
        words = paragraph.split()
        return sum(word[0].islower() for word in words) > 0.75 * len(words) and "://" not in paragraph

    return document._replace(paragraphs=[p for p in document.paragraphs if mostly_words(p)])


def dictionary_page(random: Random, entries: list[wordnet.Entry]) -> str:
    """Some words and what they mean, as plain text."""
    lines = []
    for entry in random.sample(entries, 12):
        example = f' "{sentence(entry.examples[0])}"' if entry.examples else ""
        lines.append(definition(entry) + example)
    return "\n\n".join(lines)


HELD_OUT_EVERY = 60


class Text(NamedTuple):
    group: str
    text: str
    heldOut: bool


def build(work: Path, conversations: int, tales: int, pages: int, seed: int) -> list[Text]:
    random = Random(seed)
    roots = debian_texts.fetch(work)
    books = [*debian_texts.novels(roots), *debian_texts.bible(roots["bible"])]
    lexica = [*debian_texts.bierce(roots["bierce"]), *debian_texts.jargon(roots["jargon"])]
    books = [document if document.source != "bible" else reads_as_prose(document) for document in books]
    cleaned = map(clean, [*books, *map(reads_as_prose, lexica)])
    documents = [document for document in cleaned if document.paragraphs]
    entries = wordnet.read_entries(roots["wordnet"])
    maker = TurnMaker(
        entries, [document for index, document in enumerate(documents) if index % HELD_OUT_EVERY]
    )
    corpus: list[Text] = []

    def add(group: str, text: str, index: int) -> None:
        corpus.append(Text(group, text, index % HELD_OUT_EVERY == 0))

    for index, document in enumerate(documents):
        group = {"bible": "bible", "jargon": "lexica", "bierce": "lexica"}.get(document.source, "novels")
        head = f"{document.title}: " if group == "lexica" else ""
        add(group, head + "\n\n".join(document.paragraphs), index)
    for index in range(pages):
        add("dictionary", dictionary_page(random, maker.common), index)
    for index in range(tales):
        tale = maker.tales.tale(random)
        add("tales", tale.text if random.random() < 0.5 else f"{tale.title}\n\n{tale.text}", index)
    for index in range(conversations):
        add("chats", maker.conversation(random), index)
    return corpus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("build/train-demo"))
    parser.add_argument("--conversations", type=int, default=70000)
    parser.add_argument("--tales", type=int, default=8000)
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    corpus = build(options.work, options.conversations, options.tales, options.pages, options.seed)
    sizes: collections.Counter[str] = collections.Counter()
    target = options.work / "corpus" / "corpus.jsonl.xz"
    target.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(target, "wt", preset=9 | lzma.PRESET_EXTREME, encoding="utf-8") as file:
        for text in corpus:
            sizes[text.group] += len(text.text)
            file.write(json.dumps(text._asdict(), ensure_ascii=False) + "\n")
    for group, size in sizes.items():
        print(f"{group:12} {size / 1e6:6.1f} M characters")
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
