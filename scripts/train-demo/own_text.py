"""Reads the texts written for this model (text/) and makes tales and small talk from them."""

import re
from pathlib import Path
from random import Random
from typing import NamedTuple

TEXT = Path(__file__).parent / "text"


class Topic(NamedTuple):
    questions: list[str]
    answers: list[str]


class Tale(NamedTuple):
    title: str
    hero: str
    name: str
    friend: str
    friend_kind: str
    thing: str
    text: str


def blocks(name: str) -> list[list[str]]:
    lines = [line for line in (TEXT / name).read_text().splitlines() if not line.startswith("# ")]
    return [block.splitlines() for block in "\n".join(lines).strip().split("\n\n")]


def read_topics(name: str) -> list[Topic]:
    topics = []
    for block in blocks(name):
        answers = [line[2:].replace("\\n", "\n") for line in block if line.startswith("- ")]
        topics.append(Topic([line[2:] for line in block if line.startswith("> ")], answers))
    return topics


def with_article(noun: str) -> str:
    return ("an " if noun[0] in "aeiou" else "a ") + noun


class TaleMaker:
    """Fills the plots of tales.txt with the words of tale-words.txt."""

    def __init__(self) -> None:
        (lines,) = blocks("tale-words.txt")
        self.words = {key: rest.split(", ") for key, rest in (line.split(": ", 1) for line in lines)}
        self.plots: list[tuple[str, list[list[str]]]] = []
        for block in blocks("tales.txt"):
            if block[0].startswith("== "):
                self.plots.append((block.pop(0)[3:], []))
            self.plots[-1][1].append([line[2:] for line in block])
        self.heroes = sorted({*self.words["animals"], *self.words["men"], *self.words["women"]})

    def character(self, random: Random, kind: str | None, prefix: str = "") -> dict[str, str]:
        """A kind, a name and the pronouns that agree with them."""
        if kind is None:
            kind = random.choice(self.words[random.choice(["animals", "animals", "men", "women"])])
        male_only, female_only = kind in self.words["men"], kind in self.words["women"]
        male = random.random() < 0.5 if male_only == female_only else male_only
        pronouns = ("he", "him", "his", "himself") if male else ("she", "her", "her", "herself")
        slots = {prefix + slot: word for slot, word in zip(("he", "him", "his", "himself"), pronouns)}
        slots |= {
            prefix.title() + slot.title() if prefix else slot.title(): word.title()
            for slot, word in zip(("he", "him", "his"), pronouns)
        }
        slots["kind"] = kind
        slots["name"] = random.choice(self.words["male names" if male else "female names"])
        return slots

    def tale(self, random: Random, hero: str | None = None) -> Tale:
        title, ways = random.choice(self.plots)
        slots = self.character(random, hero)
        friend = self.character(random, None, "f")
        while friend["name"] == slots["name"] or friend["kind"] == slots["kind"]:
            friend = self.character(random, None, "f")
        slots |= {slot: word for slot, word in friend.items() if slot not in ("kind", "name")}
        slots |= {"hero": slots["kind"], "friend": friend["name"], "friendkind": friend["kind"]}
        slots["Hero"] = slots["hero"].title()
        slots["place"], slots["place2"] = random.sample(self.words["places"], 2)
        slots["a manner"] = with_article(random.choice(self.words["manners"]))
        for slot in ("home", "thing", "season", "weather", "food", "danger", "crop"):
            slots[slot] = random.choice(self.words[slot + "s"])

        def fill(text: str) -> str:
            return re.sub(r"\{([^}]+)\}", lambda match: slots[match.group(1)], text)

        sentences = [fill(random.choice(way)) for way in ways]
        sentences = [sentence[0].upper() + sentence[1:] for sentence in sentences]
        at, paragraphs = 0, []
        while at < len(sentences):
            count = random.randint(2, 4)
            paragraphs.append(" ".join(sentences[at : at + count]))
            at += count
        return Tale(
            fill(title),
            slots["hero"],
            slots["name"],
            slots["friend"],
            slots["friendkind"],
            slots["thing"],
            "\n\n".join(paragraphs),
        )
