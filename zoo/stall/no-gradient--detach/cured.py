import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, LENGTH, CLASSES = 40, 9, 4


def make_sequences(n, generator):
    tokens = torch.randint(0, VOCAB, (n, LENGTH), generator=generator)
    marks = torch.arange(VOCAB) % CLASSES
    votes = F.one_hot(marks[tokens], CLASSES).sum(1).float()
    votes = votes + 0.01 * torch.rand(n, CLASSES, generator=generator)
    return tokens, votes.argmax(1)


def main():
    torch.manual_seed(6)
    g = torch.Generator().manual_seed(60)
    tokens, labels = make_sequences(2000, g)
    test_tokens, test_labels = make_sequences(500, g)

    embedding = nn.Embedding(VOCAB, 12)
    encoder = nn.GRU(12, 16, batch_first=True)
    classifier = nn.Linear(16, CLASSES)
    params = itertools.chain(embedding.parameters(), encoder.parameters(), classifier.parameters())
    optimizer = torch.optim.Adam(params, lr=0.01)

    def predict(batch):
        _, state = encoder(embedding(batch))
        state = state[-1]
        logits = classifier(state)
        return logits

    for epoch in range(8):
        losses = []
        for index in torch.randperm(len(tokens), generator=g).split(80):
            loss = F.cross_entropy(predict(tokens[index]), labels[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with torch.no_grad():
            acc = (predict(test_tokens).argmax(1) == test_labels).float().mean().item()
        print(f"epoch {epoch + 1}, loss: {sum(losses) / len(losses):.4f}, acc: {acc:.3f}")


if __name__ == "__main__":
    main()
