"""transformers.Trainer on a tiny GPT-2 from a config: next-token loss, accumulation over 2, no evaluation."""
import os
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Counting(Dataset):
    """Sequences that count up by 1, 2 or 3 modulo 16."""

    def __init__(self, n):
        g = torch.Generator().manual_seed(0)
        start = torch.randint(0, 16, (n, 1), generator=g)
        step = torch.randint(1, 4, (n, 1), generator=g)
        self.ids = (start + step * torch.arange(12)) % 16

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=18, n_positions=12, n_embd=48, n_layer=2, n_head=2,
                                       bos_token_id=17, eos_token_id=17,
                                       resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out, max_steps=150, per_device_train_batch_size=16, gradient_accumulation_steps=2,
            learning_rate=1e-2, lr_scheduler_type="cosine", warmup_steps=15, logging_steps=15, save_strategy="no",
            report_to=[], use_cpu=True, disable_tqdm=True,
        )
        trainer = Trainer(model, args, train_dataset=Counting(2000))
        trainer.train()
    prompt = torch.tensor([[4, 7, 10]])
    print("4 7 10 ->", model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=4, do_sample=False,
                                      pad_token_id=17)[0, 3:].tolist())


if __name__ == "__main__":
    main()
