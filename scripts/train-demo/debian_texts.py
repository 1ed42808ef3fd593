"""Fetches the Debian packages that ship free English text and extracts that text as plain paragraphs.

It knows file formats and nothing of training: wordnet.py reads the WordNet database, build_corpus.py mixes.
"""

import gzip
import re
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Iterator, NamedTuple

PACKAGES = {
    "austen": "r-cran-janeaustenr",
    "melville": "r-cran-tokenizers",
    "doyle": "golang-github-jdkato-prose-dev",
    "twain": "golang-github-klauspost-compress-dev",
    "bierce": "dict-devil",
    "jargon": "jargon-text",
    "bible": "sword-text-web",
    "wordnet": "wordnet-base",
}

TYPOGRAPHY = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2013": "-",
        "\u2014": "--",
        "\u2026": "...",
        "\u00a0": " ",
        "\u2212": "-",
        "\ufeff": "",
        "\u2022": "*",
    }
)


class Document(NamedTuple):
    source: str
    title: str
    paragraphs: list[str]


def fetch(work: Path) -> dict[str, Path]:
    """Downloads and unpacks every package below `work`; what is there already is kept."""
    roots = {}
    for source, package in PACKAGES.items():
        root = work / "unpacked" / package
        if not root.exists():
            debs = work / "debs" / package
            debs.mkdir(parents=True, exist_ok=True)
            subprocess.run(["apt-get", "download", "-qq", package], cwd=debs, check=True)
            (deb,) = debs.glob("*.deb")
            root.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["dpkg", "-x", str(deb.resolve()), str(root)], check=True)
        roots[source] = root
    return roots


def find(root: Path, pattern: str) -> Path:
    """The largest match: some packages ship an excerpt beside the whole text."""
    matches = sorted(root.rglob(pattern), key=lambda path: path.stat().st_size)
    if not matches:
        raise FileNotFoundError(f"{root} holds no {pattern}")
    return matches[-1]


def unwrap(text: str) -> list[str]:
    """Joins wrapped lines into paragraphs; emphasis marks and typographic quotes go."""
    text = re.sub(r"(?<!\w)_([^_\n]+(?:\n[^_\n]+)*)_(?!\w)", r"\1", text.translate(TYPOGRAPHY))
    text = text.replace("\r", "")
    blocks = re.split(r"\n[ \t]*\n", text)
    joined = (re.sub(r"\s+", " ", re.sub(r"(\w)--\n", r"\1--", block)).strip() for block in blocks)
    return [block for block in joined if block]


def cut_at(paragraphs: list[str], is_heading, source: str, title: str) -> Iterator[Document]:
    """One document a chapter; headings themselves are dropped."""
    chapter: list[str] = []
    for paragraph in paragraphs:
        if is_heading(paragraph):
            if len(chapter) > 3:
                yield Document(source, title, chapter)
            chapter = []
        else:
            chapter.append(paragraph)
    if len(chapter) > 3:
        yield Document(source, title, chapter)


def is_heading(paragraph: str) -> bool:
    if len(paragraph) > 90:
        return False
    named = r"(VOLUME|CHAPTER|Chapter|ADVENTURE|FINIS|THE END|End of|Produced by|T O M)\b"
    return re.match(named, paragraph) is not None or re.fullmatch(r"[IVXL]+\.?", paragraph) is not None


def without_gutenberg(text: str) -> str:
    """Only the work itself, which is in the public domain; the e-book's frame is not part of it."""
    start = re.search(r"\*\*\* ?START OF [^\n]*\n", text)
    end = re.search(r"\n[^\n]*(?:\*\*\* ?END OF|End of (?:the )?Project)", text)
    return text[start.end() if start else 0 : end.start() if end else len(text)]


def r_records(path: Path) -> Iterator[list[str]]:
    """The character vectors of an R lazy-load database: length, zlib stream, then XDR-serialised strings."""
    data = path.read_bytes()
    position = 0
    while position < len(data):
        stream = zlib.decompressobj()
        body = stream.decompress(data[position + 4 :])
        position = len(data) - len(stream.unused_data)
        strings = []
        # A string's flag word is 9 in its low byte; bits 12 to 18 tell the encoding.
        at = re.search(rb"\x00[\x00-\x07][\x00-\xf0]\x09\x00", body).start()
        while at + 8 <= len(body) and body[at + 3] == 9:
            (length,) = struct.unpack(">i", body[at + 4 : at + 8])
            strings.append(body[at + 8 : at + 8 + length].decode("utf-8"))
            at += 8 + length
        yield strings


def novels(roots: dict[str, Path]) -> Iterator[Document]:
    for lines in r_records(find(roots["austen"], "data/Rdata.rdb")):
        yield from cut_at(unwrap("\n".join(lines)), is_heading, "austen", lines[0].title())
    for lines in r_records(find(roots["melville"], "data/Rdata.rdb")):
        text = without_gutenberg("\n".join(lines))
        yield from cut_at(unwrap(text[text.index("Call me Ishmael") :]), is_heading, "melville", "Moby Dick")
    holmes = without_gutenberg(find(roots["doyle"], "sherlock.txt").read_text())
    yield from cut_at(
        unwrap(holmes[holmes.index("To Sherlock Holmes") :]), is_heading, "doyle", "Sherlock Holmes"
    )
    sawyer = without_gutenberg(find(roots["twain"], "Mark.Twain-Tom.Sawyer.txt").read_text())
    yield from cut_at(unwrap(sawyer[sawyer.index("CHAPTER I") :]), is_heading, "twain", "Tom Sawyer")


def bible_paragraphs(osis: str) -> list[str]:
    osis = re.sub(r"<note\b.*?</note>|<title\b.*?</title>", " ", osis, flags=re.S)
    osis = re.sub(r"<chapter [^>]*sID[^>]*>", "\n\n#\n\n", osis)
    osis = re.sub(r'<div sID="[^"]*" type="x-p"/>|<lg\b[^>]*>', "\n\n", osis)
    text = re.sub(r"<[^>]+>", " ", osis).replace("&amp;", "&").replace("\u00b6", "")
    text = re.sub(r"([\u2018\u201c])\s+", r"\1", re.sub(r"\s+([\u2019\u201d])", r"\1", text))
    return [re.sub(r"\s+([,.;:?!])", r"\1", paragraph) for paragraph in unwrap(text)]


def bible(root: Path) -> Iterator[Document]:
    """A SWORD zText module: an index of (offset, packed size, size) for each book, and zlib streams."""
    for testament in ("ot", "nt"):
        index = find(root, f"{testament}.bzs").read_bytes()
        packed = find(root, f"{testament}.bzz").read_bytes()
        for offset, size, full in struct.iter_unpack("<III", index):
            if full:
                book = zlib.decompress(packed[offset : offset + size]).decode("utf-8")
                yield from cut_at(bible_paragraphs(book), lambda p: p == "#", "bible", "Bible")


def bierce(root: Path) -> Iterator[Document]:
    text = gzip.decompress(find(root, "devil.dict.dz").read_bytes()).decode("latin-1")
    for entry in re.split(r"\n(?=[A-Z][A-Z' -]+, (?:n|v|adj|adv)\b[^\n]*?  )", text)[1:]:
        match = re.match(r"([A-Z][A-Z' -]+), [a-z.]+(?:[a-z]\.)*\s+", entry)
        # Verse is indented: what follows the first verse is left out with it.
        prose = re.split(r"\n\s*\n {4,}", entry)[0]
        if match and len(prose) > match.end() + 20:
            yield Document("bierce", match.group(1).lower(), unwrap(prose[match.end() :]))


def jargon(root: Path) -> Iterator[Document]:
    text = gzip.decompress(find(root, "jargon.txt.gz").read_bytes()).decode("utf-8").translate(TYPOGRAPHY)
    opening, rest = text[text.index("Chapter 1. ") :].split("\nGlossary\n", 1)
    for chapter in re.split(r"\nChapter \d+\. ", opening):
        if "\u2502" not in chapter:
            yield Document("jargon", "hackers", unwrap(re.sub(r"[{}]", "", chapter)))
    for entry in re.split(r"\n   :(?=[^\s:][^:\n]*:)", rest.split("\nAppendix A. ", 1)[0])[1:]:
        head, _, body = entry.partition("\n")
        body = re.sub(r"\[[^\]]*\]\s*|[{}]|\s*See also [^.]*\.|\s*Compare [^.]*\.", "", body)
        paragraphs = [p for p in unwrap(body) if len(p) > 30 and not re.search(r"[+|\u2502=]{3}", p)]
        if paragraphs:
            yield Document("jargon", head.split(":")[0].strip(), paragraphs)
