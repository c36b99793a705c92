"""Student learns to point where the teacher looks; functions from a second file."""
import torch
import torch.nn.functional as F

from saliency import Student, teacher_maps


def stretch(s):
    flat = s.flatten(1)
    low, high = flat.min(1).values[:, None, None], flat.max(1).values[:, None, None]
    return (s - low) / (high - low + 1e-6)


def train(steps=160, seed=3):
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    student = Student()
    optimizer = torch.optim.RMSprop(student.parameters(), lr=1e-3)
    for step in range(steps):
        image, target = teacher_maps(16)
        loss = F.mse_loss(stretch(student(image)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step:3d} mse {loss.item():.4f}")


if __name__ == "__main__":
    train()
