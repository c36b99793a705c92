"""Questions and answers that share their topic's words."""
import random


def pairs(steps, size, seed=31):
    rng = random.Random(seed)
    for _ in range(steps):
        questions, answers = [], []
        for _ in range(size):
            topic = rng.randrange(20)
            words = range(topic * 6, topic * 6 + 6)
            questions.append(rng.sample(words, rng.randint(1, 3)))
            answers.append([w for w in rng.sample(words, 3) if rng.random() < 0.93])
        yield questions, answers
