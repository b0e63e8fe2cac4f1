"""scikit-learn's k-means as a codec of speech, for scripts/bench rvq: frames of a few samples, one code for each.

Recordings, what is held out of them and the unit of the error are those of run.task = "rvq" (docs/rvq.md). Prints one line of
JSON: the error on what is held out.
"""

import argparse
import json
import pathlib
import wave

import numpy
from sklearn.cluster import MiniBatchKMeans

EVERY = 10  # recording is held out


def read(path):
    with wave.open(str(path)) as file:
        return numpy.frombuffer(file.readframes(file.getnframes()), dtype="<i2").astype(numpy.float32)


def frames(recordings, size):
    return numpy.concatenate([one[: len(one) // size * size].reshape(-1, size) for one in recordings])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--frame", type=int, default=6, help="samples of a frame")
    parser.add_argument("--bits", type=float, default=2, help="of a sample")
    options = parser.parse_args()
    recordings = [read(path) for path in sorted(options.folder.rglob("*.wav"))]
    training = [one for i, one in enumerate(recordings) if i % EVERY != EVERY - 1]
    held_out = [one for i, one in enumerate(recordings) if i % EVERY == EVERY - 1]
    scale = numpy.sqrt(numpy.mean(numpy.square(numpy.concatenate(training), dtype=numpy.float64)))
    codes = round(2 ** (options.bits * options.frame))
    means = MiniBatchKMeans(codes, batch_size=16 * codes, max_iter=30, n_init=1, random_state=1)
    means.fit(frames(training, options.frame) / scale)
    heard = frames(held_out, options.frame) / scale
    error = numpy.mean(numpy.square(heard - means.cluster_centers_[means.predict(heard)], dtype=numpy.float64))
    print(json.dumps({"error": float(error), "codes": codes, "frame": options.frame}))


if __name__ == "__main__":
    main()
