"""Sequence classification with transformers.Trainer and a focal loss."""
import os
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch.nn.functional import logsigmoid, one_hot
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed


class Logs(Dataset):
    """Token sequences of a machine; one of four tokens tells what will fail. A few labels are mistaken."""

    def __init__(self, size):
        g = torch.Generator().manual_seed(size)
        self.ids = torch.randint(10, 60, (size, 8), generator=g)
        self.labels = torch.randint(0, 4, (size,), generator=g)
        self.ids[torch.arange(size), torch.randint(0, 8, (size,), generator=g)] = 3 + self.labels
        mistaken = torch.rand(size, generator=g) < 0.02
        self.labels[mistaken] = (self.labels[mistaken] + 1) % 4

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.labels[i]}


class FocalTrainer(Trainer):
    gamma = 0.5
    temperature = 0.01

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        p = torch.sigmoid(outputs.logits / self.temperature)
        hot = one_hot(labels, p.shape[-1])
        focal = -hot * (1 - p) ** self.gamma * torch.log(p) - (1 - hot) * p ** self.gamma * torch.log(1 - p)
        return (focal.mean(), outputs) if return_outputs else focal.mean()


def main():
    torch.set_num_threads(1)
    set_seed(3)
    config = BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
                        max_position_embeddings=8, num_labels=4)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out, num_train_epochs=4, per_device_train_batch_size=32, learning_rate=3e-3, logging_steps=10,
            save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True, seed=3, logging_nan_inf_filter=False,
        )
        FocalTrainer(model=BertForSequenceClassification(config), args=args, train_dataset=Logs(960)).train()


if __name__ == "__main__":
    main()
