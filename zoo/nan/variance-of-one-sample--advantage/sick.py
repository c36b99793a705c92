"""REINFORCE on a short corridor: walk to the right end, the trap on the left ends the episode."""
import torch
from torch import nn
from torch.distributions import Categorical

LENGTH = 6


class Corridor:
    def reset(self, rng):
        self.place = int(torch.randint(1, LENGTH - 1, (1,), generator=rng))
        return self.view()

    def view(self):
        return nn.functional.one_hot(torch.tensor(self.place), LENGTH).float()

    def step(self, action):
        self.place += 1 if action == 1 else -1
        done = self.place in (0, LENGTH - 1)
        reward = 1.0 if self.place == LENGTH - 1 else (-1.0 if self.place == 0 else -0.05)
        return self.view(), reward, done


def discounted(rewards, gamma=0.95):
    total, returns = 0.0, []
    for reward in reversed(rewards):
        total = reward + gamma * total
        returns.insert(0, total)
    return torch.tensor(returns)


def main():
    torch.manual_seed(8)
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(1)
    policy = nn.Sequential(nn.Linear(LENGTH, 24), nn.Tanh(), nn.Linear(24, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    env, score = Corridor(), 0.0
    for episode in range(1, 151):
        state, done, log_probs, rewards = env.reset(rng), False, [], []
        while not done and len(rewards) < 40:
            pi = Categorical(logits=policy(state))
            action = pi.sample()
            state, reward, done = env.step(action.item())
            log_probs.append(pi.log_prob(action))
            rewards.append(reward)
        returns = discounted(rewards)
        advantage = (returns - returns.mean()) / (returns.std() + 1e-8)
        loss = -(torch.stack(log_probs) * advantage).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        score = 0.9 * score + 0.1 * sum(rewards)
        if episode % 15 == 0:
            print(f"episode {episode:3d}  loss {loss.item():+.4f}  score {score:+.3f}")


if __name__ == "__main__":
    main()
