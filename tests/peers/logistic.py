"""scikit-learn's logistic regression on a table, for scripts/bench classify: rows as run.task = "classify" has them (docs/classify.md),
every fifth held out, columns standardised by the others. Prints one line of JSON: the accuracy on what is held out.
"""

import argparse
import gzip
import json
import pathlib

import numpy
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

EVERY = 5  # row is held out


def is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def read(path):
    content = path.read_bytes()
    lines = (gzip.decompress(content) if path.suffix == ".gz" else content).decode().split()
    head = not all(map(is_number, lines[0].split(",")))
    return numpy.array([line.split(",") for line in lines[head:]], dtype=float)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=pathlib.Path)
    rows = read(parser.parse_args().table)
    held_out = numpy.arange(len(rows)) % EVERY == EVERY - 1
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=10000))
    model.fit(rows[~held_out, :-1], rows[~held_out, -1])
    print(json.dumps({"accuracy": model.score(rows[held_out, :-1], rows[held_out, -1]), "samples": int(held_out.sum())}))


if __name__ == "__main__":
    main()
