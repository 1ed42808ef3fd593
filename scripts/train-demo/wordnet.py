"""Reads the WordNet database into entries for conversations: word, gloss, examples, relatives."""

import re
from pathlib import Path
from typing import NamedTuple

from debian_texts import find

PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
UNWANTED = re.compile(
    r"offensive|slur|vulgar|obscen|disparag|derogat|sexual|copulat|genital|penis|vagina|prostitut|rape\b"
    r"|naked|rapist|whore|incest|masturbat|orgasm|erotic|intercourse|excre[mt]|fec|defecat|\bNegro"
    r"|ethnic|suicid|taboo|urin|eliminate wastes"
)


class Entry(NamedTuple):
    word: str
    part: str
    gloss: str
    examples: list[str]
    synonyms: list[str]
    kind: str
    opposite: str
    leads: bool  # the first, that is the usual word of its synonyms
    uses: int  # how often the annotated texts used this sense: 0 for rare words


class Synset(NamedTuple):
    words: list[str]
    pointers: list[
        tuple[str, str, str]
    ]  # symbol, part of speech + offset of the target, source and target word
    gloss: str


def readable(word: str) -> str:
    return re.sub(r"\((a|p|ip)\)$", "", word).replace("_", " ")


def read_synsets(root: Path) -> dict[str, Synset]:
    synsets = {}
    for name, letter in PARTS.items():
        for line in find(root, f"data.{name}").read_text().splitlines():
            if line.startswith("  "):
                continue
            head, _, gloss = line.partition(" | ")
            fields = head.split()
            count = int(fields[3], 16)
            words = [readable(word) for word in fields[4 : 4 + 2 * count : 2]]
            at = 4 + 2 * count
            pointers = []
            for first in range(at + 1, at + 1 + 4 * int(fields[at]), 4):
                symbol, offset, part, ends = fields[first : first + 4]
                pointers.append((symbol, part.replace("s", "a") + offset, ends))
            synsets[letter + fields[0]] = Synset(words, pointers, gloss.strip())
    return synsets


def read_use_counts(root: Path) -> dict[tuple[str, str], int]:
    """Tagged uses of each lemma's first sense, by (part of speech, lemma)."""
    counts: dict[tuple[str, str], int] = {}
    letters = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
    for line in find(root, "cntlist.rev").read_text().splitlines():
        key, sense, uses = line.split()
        lemma, rest = key.split("%")
        if sense == "1":
            counts[letters[rest[0]], lemma] = int(uses)
    return counts


def split_gloss(gloss: str) -> tuple[str, list[str]]:
    """The definition without remarks in parentheses, and the quoted examples."""
    examples = [example.strip() for example in re.findall(r'"([^"]{12,120})"', gloss)]
    definition = re.sub(r'\s*[;:]?\s*"[^"]*"?(\s*-+\s*[A-Z][^;]*)?', "", gloss)
    definition = re.sub(r"\s*\([^()]*\)", "", definition).replace("`", "'")
    parts = [part.strip(" ;,:-") for part in definition.split(";")]
    return "; ".join(part for part in parts[:2] if part), examples


def related(synset: Synset, synsets: dict[str, Synset], symbols: str, position: int | None = None) -> str:
    """The first target of a pointer; with `position`, the word that a pointer from that word names."""
    for symbol, target, ends in synset.pointers:
        if symbol not in symbols.split() or target not in synsets:
            continue
        if position is None:
            return synsets[target].words[0]
        if int(ends[:2], 16) == position + 1:
            return synsets[target].words[int(ends[2:], 16) - 1]
    return ""


def read_entries(root: Path) -> list[Entry]:
    """One entry for each lemma and part of speech: its most frequent sense."""
    synsets = read_synsets(root)
    uses = read_use_counts(root)
    entries = []
    for name, letter in PARTS.items():
        for line in find(root, f"index.{name}").read_text().splitlines():
            if line.startswith("  "):
                continue
            fields = line.split()
            synset = synsets[letter + fields[-int(fields[2])]]
            lowered = [word.lower().replace(" ", "_") for word in synset.words]
            position = lowered.index(fields[0])
            gloss, examples = split_gloss(synset.gloss)
            if (
                len(gloss) < 8
                or UNWANTED.search(synset.gloss)
                or not re.fullmatch(r"[a-z' _-]{2,}", fields[0])
            ):
                continue
            word = synset.words[position]
            entries.append(
                Entry(
                    word,
                    name,
                    gloss,
                    examples,
                    [other for other in synset.words if other.lower() != word.lower()][:3],
                    related(synset, synsets, "@ @i"),
                    related(synset, synsets, "!", position),
                    position == 0,
                    uses.get((letter, fields[0]), 0),
                )
            )
    return entries
