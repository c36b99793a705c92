"""Fit a small Keras classifier, save it, and let a second process evaluate the saved file."""

import multiprocessing
import os
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np


def ripples(n, seed):
    rng = np.random.default_rng(seed)
    frequency = rng.integers(1, 4, n)
    t = np.linspace(0, 6.28, 48)
    x = np.sin(t * frequency[:, None] + rng.uniform(0, 6.28, (n, 1))) + 0.3 * rng.normal(size=(n, 48))
    return x.astype("float32"), frequency - 1


def build():
    model = keras.Sequential([keras.Input((48,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(3)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def score(path):
    model = keras.models.load_model(path)
    x, y = ripples(500, seed=2)
    loss, accuracy = model.evaluate(x, y, verbose=0)
    print(f"held out: loss {loss:.4f} accuracy {accuracy:.3f}", flush=True)


def main():
    keras.utils.set_random_seed(0)
    x, y = ripples(2000, seed=1)
    model = build()
    model.fit(x, y, epochs=3, batch_size=64, verbose=2)
    path = os.path.join(tempfile.mkdtemp(prefix="ripples-"), "model.keras")
    model.save(path)
    context = multiprocessing.get_context("fork")
    scoring = context.Process(target=score, args=(path,))
    scoring.start()
    scoring.join()


if __name__ == "__main__":
    main()
