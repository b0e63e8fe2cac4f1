"""Which tests may be tried a second time: second_try.py LIST [REPORT]. Prints a pattern for `ctest -R` of those that failed in
CTest's JUnit file REPORT and are in LIST (tests/sensitive.txt), or nothing; 2 where a line of LIST isn't as it has to be."""

import datetime
import re
import sys
import xml.etree.ElementTree


def is_date(text):
    try:
        return bool(datetime.date.fromisoformat(text))
    except ValueError:
        return False


def names_in(path):
    names = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.split(maxsplit=2)
            if not words or words[0].startswith("#"):
                continue
            if len(words) < 3 or not is_date(words[1]):
                print(f"{path}:{number}: a test, a date (2026-01-31) and a reason, not: {line.strip()}", file=sys.stderr)
                sys.exit(2)
            names.append(words[0])
    return names


def main():
    names = names_in(sys.argv[1])
    if len(sys.argv) < 3:
        return
    cases = xml.etree.ElementTree.parse(sys.argv[2]).iter("testcase")
    again = [case.get("name") for case in cases if case.find("failure") is not None and case.get("name") in names]
    if again:
        print(f"^({'|'.join(map(re.escape, again))})$")


if __name__ == "__main__":
    main()
