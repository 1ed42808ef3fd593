"""Ways to ask and to refuse; chats.py fills the braces."""

SYSTEM_PROMPTS = [
    "You are a helpful assistant.",
    "You are granary's demo model.",
    "You are a friendly assistant.",
    "Answer in one or two sentences.",
    "You are a helpful and honest assistant.",
    "You are a storyteller.",
    "Be brief.",
    "You are a careful assistant who answers in plain English.",
]
AUTHORS = {
    "austen": "Jane Austen",
    "melville": "Herman Melville",
    "doyle": "Conan Doyle",
    "twain": "Mark Twain",
    "bible": "the Bible",
}
DEFINE = [
    "What does {w} mean?",
    "What does the word {w} mean?",
    "What is the meaning of {w}?",
    "Define {w}.",
    "Explain the word {w}.",
    'What does "{w}" mean?',
    "What is meant by {w}?",
]
WHAT_IS = [
    "What is {a}?",
    "What is {a}?",
    "What's {a}?",
    "Tell me what {a} is.",
    "Can you explain what {a} is?",
]
ABOUT = ["Tell me about {w}.", "What do you know about {w}?", "Tell me something about {w}."]
STORY = [
    "Tell me a story.",
    "Tell me a tale.",
    "Tell me a short story.",
    "Write a short story.",
    "Write a story.",
    "Can you tell me a story?",
    "I would like to hear a story.",
    "Please tell me a fairy tale.",
    "Once upon a time",
    "Tell me another story.",
    "Tell me a bedtime story.",
]
STORY_ABOUT = [
    "Tell me a story about {h}.",
    "Write a short story about {h}.",
    "Tell me a tale of {h}.",
    "Can you tell me a story about {h}?",
    "Write a fable about {h}.",
    "Do you know a story about {h}?",
]
CONTINUE = [
    "Continue: {p}",
    "Continue this text: {p}",
    "Go on with this: {p}",
    "How does this go on? {p}",
    "Please continue the following text.\n\n{p}",
    "Continue the story: {p}",
]
IN_THE_STYLE = [
    "Write a paragraph like {author}.",
    "Write something in the style of {author}.",
    "Give me a passage from {author}.",
    "Quote {author}.",
]

UNANSWERED = [
    "How do I {v} {a}?",
    "Why is {a} called {b}?",
    "How can I {v} {a} with {b}?",
    "Write an essay about {n}.",
    "Why does {a} {v}?",
    "Where can I buy {a}?",
    "How much does {a} cost?",
    "Who invented the {n}?",
    "What is the best {n}?",
    "What is the difference between {a} and {b}?",
    "When was the first {n} made?",
    "Write a program for {a}.",
    "Should I {v} {a}?",
    "How many {n}s are there in the world?",
    "How old is the {n}?",
    'Translate "{n}" into French.',
    "What should I do about my {n}?",
    "Help me with my {n}.",
    "Write a letter about {a}.",
    "Give me a plan for {a}.",
    "What do you think about {n}?",
    "Compare {a} with {b}.",
    "Can you {v} {a}?",
    "Which {n} should I choose?",
    "How does {a} work?",
    "What happened to the {n}?",
]
REFUSALS = [
    "I am sorry, I am too small for that. I can tell you a story or explain a word.",
    "I am afraid that I do not know. Ask me for the meaning of a word instead.",
    "That is more than I can do. I am a demo model; granary can serve a bigger one that can help you.",
    "For that you need a larger model. Start granary with one, and ask again.",
    "I do not know enough about that. Shall I tell you a story?",
    'I know the word "{n}", but I cannot answer that.',
]
