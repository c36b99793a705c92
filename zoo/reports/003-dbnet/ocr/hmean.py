"""H-mean: the harmonic mean of precision and recall of the boxes that are found, at an overlap of one half."""

import numpy as np

from ocr.data import SHRINK

IS_TEXT, LEAST_PIXELS, OVERLAP = 0.5, 12, 0.5
Box = tuple[int, int, int, int]


class HMean:
    def __init__(self) -> None:
        self.right = self.found = self.wanted = 0

    def add(self, prob: np.ndarray, target: np.ndarray) -> None:
        found, wanted = boxes_of(prob > IS_TEXT), boxes_of(target > 0.5)
        free = list(found)
        for box in wanted:
            best = max(free, key=lambda other: overlap(box, other), default=None)
            if best is not None and overlap(box, best) >= OVERLAP:
                self.right += 1
                free.remove(best)
        self.found, self.wanted = self.found + len(found), self.wanted + len(wanted)

    def value(self) -> float:
        return 2 * self.right / max(1, self.found + self.wanted)


def boxes_of(mask: np.ndarray) -> list[Box]:
    """The boxes of connected pixels, grown by what the maps had shrunk them."""
    left = {(int(row), int(column)) for row, column in zip(*np.nonzero(mask))}
    boxes = []
    while left:
        edge, pixels = [left.pop()], []
        while edge:
            row, column = edge.pop()
            pixels.append((row, column))
            for near in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
                if near in left:
                    left.remove(near)
                    edge.append(near)
        if len(pixels) >= LEAST_PIXELS:
            rows, columns = zip(*pixels)
            boxes.append((min(rows) - SHRINK, min(columns) - SHRINK, max(rows) + 1 + SHRINK, max(columns) + 1 + SHRINK))
    return boxes


def overlap(one: Box, other: Box) -> float:
    rows = max(0, min(one[2], other[2]) - max(one[0], other[0]))
    columns = max(0, min(one[3], other[3]) - max(one[1], other[1]))
    both = rows * columns
    return both / (area(one) + area(other) - both)


def area(box: Box) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])
