"""Training, and after each epoch a relevance pass: do the words that decided get the relevance?"""

import torch
import torch.nn.functional as F

from config import Config
from data import sentences
from lrp.linear import Linear, LinearGradient
from lrp.rnn import HandRNN


def run(config: Config) -> None:
    torch.set_num_threads(config.NUM_THREADS)
    torch.manual_seed(config.SEED)
    LinearGradient.missing = "" if config.SWITCH.BACKWARD == "right" else config.SWITCH.BACKWARD
    Linear.legacy = config.SWITCH.FUNCTIONS == "legacy"
    ids, label, moody = sentences(config.DATA.SENTENCES, config.DATA.LENGTH, config.MODEL.VOCAB, config.SEED)
    explained, explained_label, explained_moody = sentences(
        config.LRP.SENTENCES, config.DATA.LENGTH, config.MODEL.VOCAB, config.SEED + 1
    )
    model = HandRNN(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.TRAIN.LR)
    for epoch in range(config.TRAIN.EPOCHS):
        loss = accuracy = 0.0
        batches = torch.randperm(len(ids)).split(config.TRAIN.BATCH_SIZE)
        for rows in batches:
            value, right = train_batch(model, optimizer, ids[rows], label[rows], config)
            loss, accuracy = loss + value / len(batches), accuracy + right / len(batches)
        found = lrp_explanation(model, explained, explained_label, explained_moody, config.LRP.RULE)
        print(f"epoch {epoch + 1} loss {loss:.4f} accuracy {accuracy:.3f} relevance on the deciding words {found:.3f}", flush=True)


def train_batch(model, optimizer, ids, label, config: Config) -> tuple[float, float]:
    logits = model(ids)
    loss = F.cross_entropy(logits, label)
    optimizer.zero_grad()
    if config.SWITCH.STEP_BEFORE_EXPLAIN:
        loss.backward(retain_graph=True)
        optimizer.step()
        lrp_loss = logits.gather(1, label[:, None]).sum()
        torch.autograd.grad(lrp_loss, [model.embedding.weight])
    else:
        loss.backward()
        optimizer.step()
        if config.SWITCH.EXPLAIN == "same":
            lrp_loss = logits.gather(1, label[:, None]).sum()
            torch.autograd.grad(lrp_loss, [model.embedding.weight])
    return loss.item(), (logits.argmax(1) == label).float().mean().item()


def lrp_explanation(model, ids, label, moody, rule: str) -> float:
    """Share of sentences whose two most relevant words are the ones that carry the mood."""
    lrp_embedding_vector = model.embedding(ids).detach().requires_grad_(True)
    logits = model.explain(lrp_embedding_vector, rule)
    lrp_loss = logits.gather(1, label[:, None]).sum()
    relevance = torch.autograd.grad(lrp_loss, [lrp_embedding_vector])[0].sum(-1)
    top = relevance.topk(2, dim=1).indices
    return moody.gather(1, top).float().mean().item()
