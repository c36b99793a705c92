"""REINFORCE on a small cart-pole, after pytorch/examples: the loss is noise, the reward is what grows."""
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

SEED = 543
MAX_STEPS = 100
GAMMA = 0.99


class CartPole:
    """The classic equations of motion, Euler steps of 20 ms."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def reset(self):
        self.state = [self.rng.uniform(-0.05, 0.05) for _ in range(4)]
        return self.state

    def step(self, action):
        x, v, th, w = self.state
        force = 10.0 if action == 1 else -10.0
        sin, cos = math.sin(th), math.cos(th)
        temp = (force + 0.05 * w * w * sin) / 1.1
        alpha = (9.8 * sin - cos * temp) / (0.5 * (4 / 3 - 0.1 * cos * cos / 1.1))
        acc = temp - 0.05 * alpha * cos / 1.1
        self.state = [x + 0.02 * v, v + 0.02 * acc, th + 0.02 * w, w + 0.02 * alpha]
        done = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095
        return self.state, 1.0, done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 64)
        self.affine2 = nn.Linear(64, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        return F.softmax(self.affine2(F.relu(self.affine1(x))), dim=-1)


def select_action(policy, state):
    m = Categorical(policy(torch.tensor(state)), validate_args=False)
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode(policy, optimizer):
    R, returns = 0.0, []
    for r in reversed(policy.rewards):
        R = r + GAMMA * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    policy_loss = torch.stack([-lp * R for lp, R in zip(policy.saved_log_probs, returns)]).sum()
    optimizer.zero_grad()
    policy_loss.backward()
    optimizer.step()
    policy.rewards.clear()
    policy.saved_log_probs.clear()
    return policy_loss.item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    env = CartPole(SEED)
    policy = Policy()
    optimizer = optim.Adam(policy.parameters(), lr=1e-2)
    running_reward = 10.0
    for i_episode in range(1, 121):
        state, ep_reward = env.reset(), 0.0
        for _ in range(MAX_STEPS):
            state, reward, done = env.step(select_action(policy, state))
            policy.rewards.append(reward)
            ep_reward += reward
            if done:
                break
        running_reward = 0.05 * ep_reward + 0.95 * running_reward
        loss = finish_episode(policy, optimizer)
        if i_episode % 10 == 0:
            print(f"Episode {i_episode}\tLoss: {loss:.3f}\tLast reward: {ep_reward:.2f}"
                  f"\tAverage reward: {running_reward:.2f}")


if __name__ == "__main__":
    main()
