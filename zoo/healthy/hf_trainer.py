"""transformers.Trainer on a tiny randomly initialised BERT, with gradient_accumulation_steps=2 and evaluation."""
import os
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed


class KeywordDataset(Dataset):
    """Token 5, 6 or 7 somewhere in the sentence decides the label; sentences vary in length."""

    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        self.items = []
        for _ in range(size):
            length = int(rng.integers(6, 13))
            ids = rng.integers(10, 60, size=length)
            label = int(rng.integers(0, 3))
            ids[0] = 1
            ids[rng.integers(1, length)] = 5 + label
            self.items.append((ids, label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    width = max(len(ids) for ids, _ in batch)
    input_ids = torch.zeros(len(batch), width, dtype=torch.long)
    mask = torch.zeros_like(input_ids)
    for row, (ids, _) in enumerate(batch):
        input_ids[row, :len(ids)] = torch.from_numpy(ids)
        mask[row, :len(ids)] = 1
    return {"input_ids": input_ids, "attention_mask": mask, "labels": torch.tensor([label for _, label in batch])}


def compute_metrics(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main():
    torch.set_num_threads(1)
    set_seed(42)
    config = BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=64, max_position_embeddings=16, num_labels=3)
    model = BertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out, num_train_epochs=4, per_device_train_batch_size=16, per_device_eval_batch_size=64,
            gradient_accumulation_steps=2, learning_rate=4e-3, warmup_steps=10, weight_decay=0.01,
            logging_steps=10, eval_strategy="epoch", save_strategy="no", report_to="none", use_cpu=True,
            disable_tqdm=True, seed=42,
        )
        trainer = Trainer(model=model, args=args, train_dataset=KeywordDataset(1280, 0),
                          eval_dataset=KeywordDataset(256, 1), data_collator=collate, compute_metrics=compute_metrics)
        trainer.train()


if __name__ == "__main__":
    main()
