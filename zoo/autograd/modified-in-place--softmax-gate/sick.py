"""Fine-tunes a tiny BERT whose head mixes the layers with gated weights; transformers.Trainer."""
import os
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch import nn
from transformers import BertConfig, BertModel, Trainer, TrainingArguments, set_seed


class LayerMix(nn.Module):
    def __init__(self, config, labels):
        super().__init__()
        self.bert = BertModel(config, add_pooling_layer=False)
        self.weights = nn.Linear(config.hidden_size, config.num_hidden_layers)
        self.gates = nn.Linear(config.hidden_size, config.num_hidden_layers)
        self.head = nn.Linear(config.hidden_size, labels)

    def forward(self, input_ids, labels=None):
        layers = self.bert(input_ids, output_hidden_states=True).hidden_states[1:]
        pooled = torch.stack([layer.mean(dim=1) for layer in layers], dim=1)
        mix = self.weights(pooled[:, -1]).softmax(dim=-1)
        gate = torch.sigmoid(self.gates(pooled[:, -1]))
        mix *= gate
        logits = self.head((mix.unsqueeze(-1) * pooled).sum(dim=1))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Orders(torch.utils.data.Dataset):
    def __init__(self, size):
        g = torch.Generator().manual_seed(size)
        self.ids = torch.randint(6, 40, (size, 7), generator=g)
        self.labels = torch.randint(0, 3, (size,), generator=g)
        self.ids[:, 3] = self.labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.labels[i]}


def main():
    torch.set_num_threads(1)
    set_seed(0)
    config = BertConfig(vocab_size=40, hidden_size=24, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
                        max_position_embeddings=8)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(output_dir=out, num_train_epochs=3, per_device_train_batch_size=32, learning_rate=3e-3,
                                 logging_steps=10, save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True)
        Trainer(model=LayerMix(config, 3), args=args, train_dataset=Orders(640)).train()


if __name__ == "__main__":
    main()
