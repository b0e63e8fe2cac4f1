"""Holds the sources against one rule: JSON is read where it enters a process, and structs go on from there.

Complains about readings of single fields and about words of enumerations that are compared as text, outside of the
conversion files: those of protocol/ and run_files/, and *_json.h and *_json.cpp of other rooms. Prints a line for each
complaint; exit code 1 where there is one.
"""

import pathlib
import re
import sys

READING = re.compile(r'\.value\("|\b(text_of|number_of|integer_of|flag_of)\(')
WORDS = re.compile(r'std::string_view\("([a-z_]+)"\)')
COMPARED = re.compile(r'([\w()]+) [=!]= "([a-z_]+)"|"([a-z_]+)" [=!]= ([\w()]+)')
# What people and other systems say may be such a word too: names of commands and fields, values.
OTHERS = {"collective", "collnet", "command", "controller", "front()", "key", "rest", "value"}
COMMENT = re.compile(r"//.*")


def is_conversion(path: str) -> bool:
    return path.startswith(("protocol/", "run_files/")) or path.endswith(("_json.h", "_json.cpp"))


def main(paths: list[str]) -> int:
    sources = [path for path in paths if path.startswith(("protocol/", "run_files/", "runtime/", "console/"))]
    texts = {path: pathlib.Path(path).read_text(encoding="utf-8") for path in sources}
    words = {word for text in texts.values() if "EnumWords<" in text for word in WORDS.findall(text)} - {"auto"}
    complaints = []
    for path, text in texts.items():
        if is_conversion(path):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            code = COMMENT.sub("", line)
            if READING.search(code):
                complaints.append(f"{path}:{number}: reads a field of JSON; a struct of protocol/messages/ does that once")
            for left, word, earlier, right in COMPARED.findall(code):
                if (word or earlier) in words and re.split(r"\((?!\))", left or right)[-1] not in OTHERS:
                    complaints.append(f'{path}:{number}: compares the word "{word or earlier}"; it has an enumeration')
    print("\n".join(complaints), end="\n" if complaints else "")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
