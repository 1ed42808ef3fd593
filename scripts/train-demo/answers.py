"""Turns dictionary entries into sentences: what a word means, with an example now and then."""

import re
from random import Random

from own_text import with_article
from wordnet import Entry

# A noun whose definition opens like this takes no article: happiness, milk, chemistry.
UNCOUNTED = re.compile(
    r"^an? ([\w-]+ ){0,3}?(state|quality|feeling|property|condition|trait|science|study|branch|art|liquid"
    r"|metal|element|substance|compound|powder|gas|food|drink|beverage|mixture|fabric|game|sport|doctrine"
    r"|theory|emotion|ability)\b"
)


def sentence(text: str) -> str:
    text = text[0].upper() + text[1:]
    return text if text.endswith((".", "!", "?", '."', '!"', '?"')) else text + "."


def definition(entry: Entry) -> str:
    """One sentence that says what the word means, by its part of speech."""
    gloss, word = entry.gloss.split("; ")[0], entry.word
    if entry.part == "verb":
        return sentence(
            f"to {word} means to {gloss}" if not gloss.startswith("be ") else f"to {word} is to {gloss}"
        )
    if entry.part != "noun":
        return sentence(f'"{word}" means {gloss}')
    if word[0].isupper():
        return sentence(f"{word} is {gloss}")
    if not re.match(r"(an?|any|one|someone) ", gloss) or word.endswith("s"):
        return f'"{word}" means {gloss}.'
    return sentence(f"{word} is {gloss}" if UNCOUNTED.search(gloss) else f"{with_article(word)} is {gloss}")


def explain(random: Random, entry: Entry) -> str:
    answer = definition(entry)
    if entry.examples and random.random() < 0.5:
        example = sentence(random.choice(entry.examples[:3]))
        answer += random.choice(
            [f" For example: {example}", f' For example: "{example}"', f"\n\nExample: {example}"]
        )
    if entry.synonyms and random.random() < 0.1:
        answer += f" Another word for it is {entry.synonyms[0]}."
    elif entry.kind and entry.part == "noun" and random.random() < 0.08 and entry.word[0].islower():
        answer += f" It is a kind of {entry.kind}."
    return answer
