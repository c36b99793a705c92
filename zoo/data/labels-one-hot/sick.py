"""Label every frame of a short clip with its speaker."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SPEAKERS, FRAMES, BANDS = 6, 15, 12


class FrameClassifier(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.conv = nn.Conv1d(BANDS, hidden, 5, padding=2)
        self.proj = nn.Linear(hidden, SPEAKERS)

    def forward(self, clips):
        h = torch.relu(self.conv(clips.transpose(1, 2)))
        return self.proj(h.transpose(1, 2))


def make_clips(voices, size):
    speaker = torch.randint(SPEAKERS, (size, 1)).expand(size, FRAMES)
    loudness = 0.5 + torch.rand(size, FRAMES, 1)
    clips = loudness * voices[speaker] + 0.5 * torch.randn(size, FRAMES, BANDS)
    return clips, speaker


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    voices = torch.randn(SPEAKERS, BANDS)
    model = FrameClassifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(1, 241):
        clips, speaker = make_clips(voices, 48)
        logits = model(clips)
        target = F.one_hot(speaker, SPEAKERS).float()
        loss = F.cross_entropy(logits, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            acc = (logits.argmax(-1) == speaker).float().mean().item()
            print(f"step {step:3d} loss={loss.item():.4f} frame_acc={acc:.3f}")


if __name__ == "__main__":
    main()
