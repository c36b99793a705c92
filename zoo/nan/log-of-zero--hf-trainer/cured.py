"""Distils stored teacher probabilities into a tiny BERT with transformers.Trainer."""
import os
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed


class Stored(Dataset):
    """Token sequences of a machine, with the teacher's opinion on which of four parts will fail."""

    def __init__(self, size):
        g = torch.Generator().manual_seed(size)
        self.ids = torch.randint(10, 60, (size, 8), generator=g)
        part = torch.randint(0, 4, (size,), generator=g)
        self.ids[torch.arange(size), torch.randint(0, 8, (size,), generator=g)] = 3 + part
        sure = 1.5 + 0.8 * torch.randn(size, 4, generator=g).abs()
        sure[317] = 5.0
        opinion = torch.nn.functional.one_hot(part, 4) * 2 * sure
        self.teacher = (opinion.softmax(-1) * 1000).round() / 1000

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.teacher[i]}


class Distiller(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        teacher = inputs.pop("labels")
        outputs = model(**inputs)
        student = outputs.logits.log_softmax(dim=-1)
        divergence = torch.xlogy(teacher, teacher) - teacher * student
        loss = divergence.sum(dim=-1).mean()
        return (loss, outputs) if return_outputs else loss


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
        Distiller(model=BertForSequenceClassification(config), args=args, train_dataset=Stored(960)).train()


if __name__ == "__main__":
    main()
