"""MoCo: a momentum encoder without gradients, a queue of negatives, and labels that are zero in every batch."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class MoCo(nn.Module):
    def __init__(self, dim=16, K=512, m=0.99, T=0.2):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        make = lambda: nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, dim))
        self.encoder_q, self.encoder_k = make(), make()
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data.copy_(param_q.data)
            param_k.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _momentum_update_key_encoder(self):
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data = param_k.data * self.m + param_q.data * (1.0 - self.m)

    @torch.no_grad()
    def _dequeue_and_enqueue(self, keys):
        ptr = int(self.queue_ptr)
        self.queue[:, ptr:ptr + len(keys)] = keys.T
        self.queue_ptr[0] = (ptr + len(keys)) % self.K

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self._momentum_update_key_encoder()
            k = F.normalize(self.encoder_k(im_k), dim=1)
        l_pos = (q * k).sum(1, keepdim=True)
        l_neg = q @ self.queue.clone().detach()
        logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        labels = torch.zeros(logits.shape[0], dtype=torch.long)
        self._dequeue_and_enqueue(k)
        return logits, labels


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    latent = torch.randn(4000, 8)
    clean = latent @ torch.randn(8, 32)

    def views(idx):
        return [clean[idx] + 0.7 * torch.randn(len(idx), 32) for _ in range(2)]

    model = MoCo()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.encoder_q.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    losses, top1 = [], []
    for i in range(1, 601):
        output, target = model(*views(torch.randint(0, 4000, (64,))))
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        top1.append((output.argmax(1) == target).float().mean().item())
        if i % 50 == 0:
            print(f"[{i}/600]\tLoss {sum(losses) / 50:.4e}\tAcc@1 {100 * sum(top1) / 50:6.2f}")
            losses, top1 = [], []


if __name__ == "__main__":
    main()
