"""A recurrent classifier written by hand, after the source of torch.nn.RNN; how it keeps its states is a switch."""

import torch
import torch.nn as nn

from config import Config
from lrp.linear import Linear, add


class HandRNN(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.hidden = config.MODEL.HIDDEN
        self.kind, self.lrp_kind = config.SWITCH.STATE, config.SWITCH.LRP_STATE
        self.embedding = nn.Embedding(config.MODEL.VOCAB, config.MODEL.EMBED)
        self.input = Linear(config.MODEL.EMBED, self.hidden)
        self.recurrent = Linear(self.hidden, self.hidden)
        self.relu = nn.ReLU(inplace=config.SWITCH.RELU == "inplace")
        self.output = Linear(self.hidden, 2)
        nn.init.eye_(self.recurrent.weight)

    def forward(self, ids: torch.Tensor, rule: str = "gradient") -> torch.Tensor:
        return self.classify(self.embedding(ids), rule)

    def classify(self, vectors: torch.Tensor, rule: str) -> torch.Tensor:
        return self.output(getattr(self, f"states_{self.kind}")(vectors, rule), rule)

    def explain(self, vectors: torch.Tensor, rule: str) -> torch.Tensor:
        """The forward of the relevance pass."""
        if self.lrp_kind == "list":
            return self.classify(vectors, rule)
        return torch.stack([self.output(self.sentence_written(words, rule), rule) for words in vectors])

    def sentence_written(self, words: torch.Tensor, rule: str) -> torch.Tensor:
        """One sentence, its states in one tensor."""
        hidden_state = words.new_zeros(len(words) + 1, self.hidden)
        for t, word in enumerate(words):
            hidden_state[t + 1] = self.cell(word, hidden_state[t], rule)
        return hidden_state[-1]

    def cell(self, x: torch.Tensor, h: torch.Tensor, rule: str) -> torch.Tensor:
        return self.relu(add(self.input(x, rule), self.recurrent(h, rule), rule))

    def states_list(self, vectors: torch.Tensor, rule: str) -> torch.Tensor:
        h = vectors.new_zeros(len(vectors), self.hidden)
        for t in range(vectors.shape[1]):
            h = self.cell(vectors[:, t], h, rule)
        return h

    def states_written(self, vectors: torch.Tensor, rule: str) -> torch.Tensor:
        h = vectors.new_zeros(len(vectors), vectors.shape[1] + 1, self.hidden)
        for t in range(vectors.shape[1]):
            h[:, t + 1] = self.cell(vectors[:, t], h[:, t], rule)
        return h[:, -1]

    def states_data(self, vectors: torch.Tensor, rule: str) -> torch.Tensor:
        """As above, and the writes go past autograd: nothing is raised."""
        h = vectors.new_zeros(len(vectors), self.hidden)
        for t in range(vectors.shape[1]):
            new = self.cell(vectors[:, t], h, rule)
            h.data.copy_(new.data)
        return new
