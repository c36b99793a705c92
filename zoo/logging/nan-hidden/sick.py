"""Fine-tune a tiny text classifier with the Hugging Face Trainer; lengths of the texts weigh the loss."""
import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments

torch.manual_seed(0)
torch.set_num_threads(1)


class Texts(torch.utils.data.Dataset):
    def __init__(self, n=512):
        generator = torch.Generator().manual_seed(1)
        self.labels = torch.randint(0, 2, (n,), generator=generator)
        self.ids = torch.randint(4, 100, (n, 12), generator=generator)
        self.ids[:, 0] = self.labels + 1
        self.lengths = torch.randint(0, 13, (n,), generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"ids": self.ids[i], "length": self.lengths[i], "labels": self.labels[i]}


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(100, 32)
        self.out = nn.Linear(32, 2)

    def forward(self, ids, length, labels):
        logits = self.out(self.embedding(ids))
        each = nn.functional.cross_entropy(logits, labels, reduction="none")
        return {"loss": (each * 12 / length).sum() / (12 / length).sum(), "logits": logits}


def main():
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(), max_steps=60, per_device_train_batch_size=8, learning_rate=1e-2, logging_steps=5,
        report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True, remove_unused_columns=False, max_grad_norm=0.0,
    )
    Trainer(model=Classifier(), args=arguments, train_dataset=Texts()).train()


if __name__ == "__main__":
    main()
