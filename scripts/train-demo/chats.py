"""Makes conversations in ChatML from tales, small talk, the dictionary, arithmetic and passages of books."""

import re
from random import Random

from answers import definition, explain, sentence
from debian_texts import Document
from own_text import TaleMaker, read_topics, with_article
from phrases import (
    ABOUT,
    AUTHORS,
    CONTINUE,
    DEFINE,
    IN_THE_STYLE,
    REFUSALS,
    STORY,
    STORY_ABOUT,
    SYSTEM_PROMPTS,
    UNANSWERED,
    WHAT_IS,
)
from wordnet import Entry

Turn = tuple[str, str]


class TurnMaker:
    """Each method answers one exchange; a conversation strings several together."""

    def __init__(self, entries: list[Entry], documents: list[Document]) -> None:
        by_word: dict[str, Entry] = {}
        for entry in entries:
            if entry.word not in by_word or entry.uses > by_word[entry.word].uses:
                by_word[entry.word] = entry
        short = [entry for entry in by_word.values() if len(entry.gloss.split("; ")[0]) < 110]
        self.common = [entry for entry in short if entry.uses > 1]
        self.frequent = [entry for entry in short if entry.uses > 7]
        self.rare = [
            entry for entry in short if entry.uses == 0 and entry.word.isalpha() and entry.word.islower()
        ]
        self.nouns = [entry.word for entry in self.frequent if entry.part == "noun" and entry.word.isalpha()]
        self.verbs = [entry.word for entry in self.frequent if entry.part == "verb" and entry.word.isalpha()]
        self.phrases = [example for entry in self.common for example in entry.examples if len(example) < 50]
        self.opposites = [entry for entry in entries if entry.opposite and entry.uses > 2]
        self.synonyms = [entry for entry in self.frequent if entry.synonyms]
        self.kinds = [entry for entry in self.frequent if entry.part == "noun" and entry.kind]
        self.capitals = []
        for entry in entries:
            match = re.match(
                r"(?:the )?(?:national )?capital (?:and largest city )?of ([A-Z][A-Za-z ]+)", entry.gloss
            )
            named = [s[11:] for s in entry.synonyms if re.match(r"capital of [A-Z]", s)]
            if match and entry.leads and entry.word[0].isupper() and "apital" not in entry.word:
                self.capitals.append((match.group(1).strip(), entry))
            elif named and entry.leads and "apital" not in entry.word:
                self.capitals.append((named[0], entry))
        self.books = [document for document in documents if document.source in AUTHORS]
        self.headwords = [
            d for d in documents if d.source in ("jargon", "bierce") and len(d.paragraphs[0]) < 900
        ]
        self.topics = read_topics("smalltalk.txt")
        self.facts = read_topics("facts.txt")
        self.tales = TaleMaker()

    def small_talk(self, random: Random) -> list[Turn]:
        topic = random.choice(self.topics)
        return [(random.choice(topic.questions), random.choice(topic.answers))]

    def fact(self, random: Random) -> list[Turn]:
        topic = random.choice(self.facts)
        return [(random.choice(topic.questions), random.choice(topic.answers))]

    def refusal(self, random: Random) -> list[Turn]:
        """Questions of every kind about anything: the model shall say that it is too small for them."""
        noun, other, verb = random.choice(self.nouns), random.choice(self.nouns), random.choice(self.verbs)
        question = random.choice(UNANSWERED).format(
            n=noun, a=with_article(noun), b=with_article(other), v=verb
        )
        return [(question, random.choice(REFUSALS).format(n=noun))]

    def echo(self, random: Random) -> list[Turn]:
        phrase = sentence(random.choice(self.phrases))
        return [
            (
                random.choice(["Say: {}", "Repeat after me: {}", "Repeat: {}", "Please say: {}"]).format(
                    phrase
                ),
                phrase,
            )
        ]

    def acquaintance(self, random: Random) -> list[Turn]:
        """A name that is told first and asked for later."""
        words = self.tales.words
        name = random.choice(words["male names"] + words["female names"])
        told = random.choice(["My name is {}.", "I am {}.", "Hello, my name is {}.", "Hi, I'm {}."]).format(
            name
        )
        greeting = random.choice(
            ["Hello, {}! How can I help you?", "Nice to meet you, {}.", "Hello, {}!"]
        ).format(name)
        between = self.small_talk(random) if random.random() < 0.5 else []
        asked = random.choice(["What is my name?", "Do you know my name?", "What's my name?", "Who am I?"])
        return [(told, greeting), *between, (asked, f"Your name is {name}.")]

    def dictionary(self, random: Random) -> list[Turn]:
        entry = random.choice(*random.choices([self.frequent, self.common, self.rare], weights=[70, 25, 5]))
        word, shape = entry.word, random.random()
        if entry.part == "noun" and shape < 0.6:
            bare = word[0].isupper() or not definition(entry).lower().startswith(("a ", "an "))
            question = random.choice(WHAT_IS).format(a=word if bare else with_article(word))
        elif entry.part == "noun" and shape < 0.75:
            question = random.choice(ABOUT).format(w=word)
        else:
            asked = f"to {word}" if entry.part == "verb" and random.random() < 0.3 else word
            question = random.choice(DEFINE).format(w=asked)
        turns = [(question, explain(random, entry))]
        if entry.examples and random.random() < 0.12:
            example = sentence(random.choice(entry.examples))
            turns.append(
                (
                    random.choice(["Can you use it in a sentence?", "Give me an example.", "For example?"]),
                    example,
                )
            )
        return turns

    def relation(self, random: Random) -> list[Turn]:
        which = random.random()
        if which < 0.3:
            entry = random.choice(self.opposites)
            question = random.choice(["What is the opposite of {}?", "Name the opposite of {}."])
            return [(question.format(entry.word), f"The opposite of {entry.word} is {entry.opposite}.")]
        if which < 0.55:
            entry = random.choice(self.synonyms)
            question = random.choice(["What is another word for {}?", "Give me a synonym of {}."])
            return [(question.format(entry.word), f"Another word for {entry.word} is {entry.synonyms[0]}.")]
        if which < 0.75:
            entry = random.choice(self.kinds)
            return [
                (
                    f"What kind of thing is {with_article(entry.word)}?",
                    sentence(f"{with_article(entry.word)} is a kind of {entry.kind}"),
                )
            ]
        country, city = random.choice(self.capitals)
        question = random.choice(
            ["What is the capital of {}?", "Name the capital of {}.", "Which city is the capital of {}?"]
        )
        return [(question.format(country), f"The capital of {country} is {city.word}.")]

    def arithmetic(self, random: Random) -> list[Turn]:
        a, b = random.randint(0, 10), random.randint(0, 10)
        if random.random() < 0.5:
            question = random.choice(
                ["What is {} plus {}?", "What is {} + {}?", "{} + {}", "How much is {} plus {}?"]
            )
            return [(question.format(a, b), f"{a} plus {b} is {a + b}.")]
        if random.random() < 0.5:
            a = max(a, b)
            question = random.choice(["What is {} minus {}?", "What is {} - {}?"])
            return [(question.format(a, b), f"{a} minus {b} is {a - b}.")]
        question = random.choice(["What is {} times {}?", "What is {} * {}?", "What is {} x {}?"])
        return [(question.format(a, b), f"{a} times {b} is {a * b}.")]

    def story(self, random: Random) -> list[Turn]:
        """A tale, and now and then a question about it: the model shall look back into the conversation."""
        if random.random() < 0.35:
            tale = self.tales.tale(random)
            question, answer = random.choice(STORY), tale.text
        else:
            tale = self.tales.tale(random, random.choice(self.tales.heroes))
            about = with_article(tale.hero)
            if random.random() < 0.4:
                about += random.choice(
                    [
                        f" and {tale.thing}",
                        f" called {tale.name}",
                        f" who wants to {random.choice(self.verbs)}",
                        f" and {with_article(tale.friend_kind)}",
                        f" that could {random.choice(self.verbs)}",
                    ]
                )
            question = random.choice(STORY_ABOUT).format(h=about)
            answer = tale.text if random.random() < 0.7 else f"{tale.title}\n\n{tale.text}"
        turns = [(question, answer)]
        if random.random() < 0.3:
            turns.append(
                random.choice(
                    [
                        (
                            f"What was the name of the {tale.hero}?",
                            f"The {tale.hero} was called {tale.name}.",
                        ),
                        (
                            "Who was the story about?",
                            f"It was about {tale.name} the {tale.hero} and {tale.friend} "
                            f"the {tale.friend_kind}.",
                        ),
                        (f"Who was {tale.friend}?", f"{tale.friend} was a {tale.friend_kind}."),
                        ("What was the title of the story?", f'It is called "{tale.title}".'),
                    ]
                )
            )
        return turns

    def passage(self, random: Random) -> list[Turn]:
        book = random.choice(self.books)
        at = random.randrange(len(book.paragraphs))
        taken = book.paragraphs[at : at + random.randint(1, 3)]
        text = "\n\n".join(taken)[:1600]
        text = text[: max(text.rfind(mark) + len(mark) for mark in (".", "!", "?", '."', '!"', '?"'))]
        if random.random() < 0.25 or " " not in text:
            return [(random.choice(IN_THE_STYLE).format(author=AUTHORS[book.source]), text)]
        words = text.split(" ")
        cut = random.randint(min(4, len(words) - 1), max(min(40, len(words) // 2), min(4, len(words) - 1)))
        given, rest = " ".join(words[:cut]), " ".join(words[cut:])
        return [(random.choice(CONTINUE).format(p=given), rest)]

    def headword(self, random: Random) -> list[Turn]:
        document = random.choice(self.headwords)
        answer = document.paragraphs[0]
        if document.source == "bierce":
            ways = ["How does the Devil's Dictionary define {}?", "What does Ambrose Bierce say about {}?"]
        else:
            ways = [
                "What do hackers mean by {}?",
                "What is {} in the Jargon File?",
                "What does {} mean to a programmer?",
            ]
        return [(random.choice(ways).format(document.title), sentence(answer))]

    def turns(self, random: Random) -> list[Turn]:
        (maker,) = random.choices(
            [
                self.small_talk,
                self.fact,
                self.dictionary,
                self.story,
                self.relation,
                self.arithmetic,
                self.passage,
                self.headword,
                self.refusal,
                self.echo,
                self.acquaintance,
            ],
            weights=[20, 12, 26, 14, 6, 3, 6, 2, 7, 2, 2],
        )
        (question, answer), *more = maker(random)
        if random.random() < 0.12:
            question = question[0].lower() + question[1:]
        if random.random() < 0.08:
            question = question.rstrip("?.!")
        return [(question, answer.strip()), *more]

    def conversation(self, random: Random) -> str:
        parts = []
        if random.random() < 0.3:
            parts.append(("system", random.choice(SYSTEM_PROMPTS)))
        (count,) = random.choices([1, 2, 3, 4, 6, 9], weights=[46, 20, 14, 10, 6, 4])
        for _ in range(count):
            for question, answer in self.turns(random):
                parts += [("user", question), ("assistant", answer)]
        return "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in parts)
