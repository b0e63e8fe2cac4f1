#!/usr/bin/env python3
"""Checks README.md, CONTRIBUTING.md and docs/: the names, the links, the lines and the sentences.

    tests/docs/check_docs.py [FILE…]     default: all of them

- A file or folder of the tree that a document names in backticks or links to exists.
- A linked heading exists, in this document or another one; so does a page that a source names (docs/lua.md, "Rules").
- A line has at most 100 columns. Tables, links and code are as long as they have to be.
- Of ten sentences nine have fewer than 30 words. A code span is one word; tables, headings and code don't count.
"""

import fnmatch
import functools
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOT_OURS = {"build", "runs", "shared", ".git", ".venv", "__pycache__"}
WIDEST_LINE = 100
LONGEST_SENTENCE = 30  # words; of one in ten
FEW_SENTENCES = 10     # with fewer there is no tenth
SOURCES = (".h", ".cpp", ".py", ".cmake")  # a bare name that ends so is a file of the tree
NOT_HERE = {"nccl.h", "client.py"}         # NCCL's own, and the reader's copy of a page
RUN_FOLDERS = {"RUN", "checkpoints", "jobs", "log", "device-results", "data"}  # of a run or a result, not of the tree

FENCE = re.compile(r"^\s*```")
SPAN = re.compile(r"``[^`]+``|`([^`]+)`")
LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
PATH = re.compile(r"^[\w.+*-]+(/[\w.+*-]+)*/?$")
SENTENCE_END = re.compile(r"(?<=[.!?…])[\")”]*\s+(?=[\"“(`*]*[A-Z0-9`])")
SOURCE_LINK = re.compile(r"docs/([\w-]+\.md)(?:#([\w-]+)|,? \(?\"([^\"]+)\")?")  # docs/lua.md, "Rules"


@functools.lru_cache(None)
def tree():
    """Every file and folder of the tree, relative to its root."""
    names = set()
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in NOT_OURS]
        inside = pathlib.Path(folder).relative_to(ROOT)
        names.update(str(inside / name) for name in folders + files)
    return names


def exists(name):
    """Whether the path `name`, or one that ends with it, is in the tree; '*' stands for any text."""
    name = name.rstrip("/")
    if "*" in name:
        return any(fnmatch.fnmatchcase(path, pattern) for path in tree() for pattern in (name, "*/" + name))
    return name in tree() or any(path.endswith("/" + name) for path in tree())


def named_path(span):
    """The path of the tree that a code span names, or None."""
    word = (span.split() or [""])[0]
    top = word.split("/")[0]
    if not PATH.match(word) or word in NOT_HERE or top in RUN_FOLDERS | NOT_OURS:
        return None
    is_ours = "/" in word and (top in tree() or word.endswith("/"))
    return word if is_ours or word.endswith(SOURCES) else None


def slug(heading):
    """The anchor that a heading has on the web."""
    heading = LINK.sub(r"\1", heading.strip()).lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


class Document:
    """A page, taken apart: `lines` with their numbers and whether they are code, `prose` in paragraphs."""

    def __init__(self, path):
        self.path = path
        self.name = str(path.relative_to(ROOT))
        self.lines = []
        in_fence = False
        for number, line in enumerate(path.read_text().splitlines(), 1):
            is_fence = bool(FENCE.match(line))
            self.lines.append((number, line, in_fence or is_fence or line.startswith("    ")))
            in_fence ^= is_fence

    def anchors(self):
        return {slug(line.lstrip("#")) for _, line, code in self.lines if not code and line.startswith("#")}

    def paragraphs(self):
        """Prose alone, a paragraph or an item of a list each."""
        paragraph = []
        for _, line, code in self.lines + [(0, "", False)]:
            item = re.match(r"^\s*([-*]|\d+\.)\s+(.*)", line)
            ends = code or not line.strip() or line.lstrip().startswith(("|", "#", "<", "!["))
            if (ends or item) and paragraph:
                yield " ".join(paragraph)
                paragraph = []
            if not ends:
                paragraph.append(item.group(2) if item else line.strip())

    def sentences(self):
        for paragraph in self.paragraphs():
            text = LINK.sub(r"\1", paragraph)
            text = SPAN.sub(lambda span: "CODE" + (span.group(0)[-2:-1] if span.group(0)[-2:-1] in ".!?" else ""), text)
            yield from (sentence for sentence in SENTENCE_END.split(text) if sentence.strip())


def names(document):
    for number, line, code in document.lines:
        if code:
            continue
        for span in SPAN.finditer(line):
            path = named_path(span.group(1) or "")
            if path and not exists(path):
                yield f"{document.name}:{number}: there is no {path}"


def links(document):
    text = "\n".join("" if code else line for _, line, code in document.lines)
    for link in LINK.finditer(text):
        number = text.count("\n", 0, link.start()) + 1
        target, _, anchor = link.group(2).partition("#")
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        path = (document.path.parent / target).resolve() if target else document.path
        if not path.exists():
            yield f"{document.name}:{number}: links to {target}, which isn't there"
        elif anchor and path.suffix == ".md" and anchor not in Document(path).anchors():
            yield f"{document.name}:{number}: {path.name} has no heading for #{anchor}"


def width(document):
    for number, line, code in document.lines:
        if len(line) > WIDEST_LINE and not code and not line.startswith(("|", "<")) and "](" not in line and "http" not in line:
            yield f"{document.name}:{number}: {len(line)} columns, {WIDEST_LINE} are allowed"


def words(sentence):
    return sum(any(letter.isalnum() for letter in word) for word in sentence.split())


def lengths(document):
    sentences = sorted(document.sentences(), key=words)
    if len(sentences) < FEW_SENTENCES:
        return
    ninetieth = words(sentences[int(0.9 * len(sentences))])
    if ninetieth >= LONGEST_SENTENCE:
        yield (f"{document.name}: one sentence in ten has {ninetieth} words or more, fewer than {LONGEST_SENTENCE} are allowed. "
               f"The longest: " + " / ".join(f"{words(sentence)}: {sentence[:90]}…" for sentence in sentences[-3:]))


def sources():
    """Documents that comments and messages of the sources name."""
    for name in sorted(tree()):
        if not name.endswith((".h", ".cpp", ".py", ".txt", ".lua", ".cmake")) or not (ROOT / name).is_file():
            continue
        for number, line in enumerate((ROOT / name).read_text(errors="replace").splitlines(), 1):
            for link in SOURCE_LINK.finditer(line):
                page = ROOT / "docs" / link.group(1)
                if not page.exists():
                    yield f"{name}:{number}: there is no docs/{link.group(1)}"
                    continue
                anchors, heading = Document(page).anchors(), link.group(3)
                if link.group(2) and link.group(2) not in anchors:
                    yield f"{name}:{number}: docs/{link.group(1)} has no heading for #{link.group(2)}"
                if heading and not any(slug(heading) in anchor for anchor in anchors):
                    yield f"{name}:{number}: docs/{link.group(1)} has no heading {heading}"


def main():
    given = [pathlib.Path(name).resolve() for name in sys.argv[1:]]
    pages = given or [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    faults = [] if given else list(sources())
    for page in pages:
        document = Document(page)
        for check in (names, links, width, lengths):
            faults.extend(check(document))
    print("\n".join(faults) or f"{len(pages)} documents are in order")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
