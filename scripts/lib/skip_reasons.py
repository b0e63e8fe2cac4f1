"""Says why tests were skipped: `NAME: REASON` for each that CTest's JUnit file (its argument) has as skipped. What a test
says of it is the line after GoogleTest's `FILE:LINE: Skipped`, or a line `skipped: REASON`; where it says nothing, CTest's own
word counts."""

import re
import sys
import xml.etree.ElementTree


def reason_of(case):
    said = re.search(r": Skipped\n+(.+)|^skipped: (.+)", case.findtext("system-out") or "", re.MULTILINE)
    return (said.group(1) or said.group(2)).strip() if said else case.find("skipped").get("message") or "no reason given"


def main():
    for case in xml.etree.ElementTree.parse(sys.argv[1]).iter("testcase"):
        if case.find("skipped") is not None:
            print(f"{case.get('name')}: {reason_of(case)}")


if __name__ == "__main__":
    main()
