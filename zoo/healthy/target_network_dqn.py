"""DQN on a small grid world with a target network copied every 100 steps; the TD loss is no progress bar."""
import random
from collections import deque, namedtuple

import torch
import torch.nn as nn

Transition = namedtuple("Transition", "state action reward next_state done")
SIZE, GAMMA, BATCH, SYNC_EVERY = 5, 0.95, 48, 100
MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]


class GridWorld:
    goal, pits = (4, 4), {(1, 3), (3, 1)}

    def reset(self):
        self.pos, self.t = random.choice([(0, 0), (0, 4), (4, 0), (2, 2)]), 0
        return self.encode()

    def encode(self):
        x = torch.zeros(SIZE * SIZE)
        x[self.pos[0] * SIZE + self.pos[1]] = 1.0
        return x

    def step(self, action):
        dr, dc = MOVES[action]
        self.pos = (min(max(self.pos[0] + dr, 0), SIZE - 1), min(max(self.pos[1] + dc, 0), SIZE - 1))
        self.t += 1
        if self.pos == self.goal:
            return self.encode(), 1.0, True
        if self.pos in self.pits:
            return self.encode(), -1.0, True
        return self.encode(), -0.02, self.t >= 40


class DQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(SIZE * SIZE, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, x):
        return self.layers(x)


def optimize_model(policy_net, target_net, memory, optimizer):
    batch = Transition(*zip(*random.sample(memory, BATCH)))
    state, next_state = torch.stack(batch.state), torch.stack(batch.next_state)
    action, reward = torch.tensor(batch.action)[:, None], torch.tensor(batch.reward)
    not_done = 1.0 - torch.tensor(batch.done, dtype=torch.float32)

    q = policy_net(state).gather(1, action).squeeze(1)
    with torch.no_grad():
        target = reward + GAMMA * not_done * target_net(next_state).max(1).values
    loss = nn.functional.smooth_l1_loss(q, target)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss.item()


def main():
    torch.set_num_threads(1)
    random.seed(0)
    torch.manual_seed(0)
    env, memory = GridWorld(), deque(maxlen=5000)
    policy_net, target_net = DQN(), DQN()
    target_net.load_state_dict(policy_net.state_dict())
    target_net.eval()
    optimizer = torch.optim.AdamW(policy_net.parameters(), lr=2e-3, amsgrad=True)

    steps, losses, returns = 0, deque(maxlen=100), deque(maxlen=20)
    for episode in range(180):
        state, done, total = env.reset(), False, 0.0
        epsilon = max(0.05, 1.0 - episode / 80)
        while not done:
            if random.random() < epsilon:
                action = random.randrange(4)
            else:
                with torch.no_grad():
                    action = policy_net(state).argmax().item()
            next_state, reward, done = env.step(action)
            memory.append(Transition(state, action, reward, next_state, done))
            state, total, steps = next_state, total + reward, steps + 1
            if len(memory) >= 200 and steps % 2 == 0:
                losses.append(optimize_model(policy_net, target_net, memory, optimizer))
            if steps % SYNC_EVERY == 0:
                target_net.load_state_dict(policy_net.state_dict())
        returns.append(total)
        if (episode + 1) % 20 == 0 and losses:
            print(f"episode {episode + 1:4d}  steps {steps:5d}  eps {epsilon:.2f}  "
                  f"loss {sum(losses) / len(losses):.5f}  return {sum(returns) / len(returns):.3f}")


if __name__ == "__main__":
    main()
