"""Deterministic actor-critic that steers a point to the origin."""
import torch
from torch import nn, optim


class Agent:
    def __init__(self):
        self.actor = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2), nn.Tanh())
        self.critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
        self.actor_opt = optim.Adam(self.actor.parameters(), lr=2e-3)
        self.critic_opt = optim.Adam(self.critic.parameters(), lr=1e-2)

    def value(self, state, action):
        return self.critic(torch.cat([state, action], dim=1))

    def learn(self, state, action, reward):
        critic_loss = (self.value(state, action) - reward).pow(2).mean()
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()
        actor_loss = -self.value(state, self.actor(state)).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()
        return critic_loss.item(), actor_loss.item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    agent = Agent()
    for step in range(200):
        state = torch.randn(64, 2)
        with torch.no_grad():
            action = (agent.actor(state) + 0.8 * torch.randn(64, 2)).clamp(-1, 1)
        reward = -(state + action).norm(dim=1, keepdim=True)
        critic, actor = agent.learn(state, action, reward)
        if step % 40 == 0:
            print(f"step {step} critic {critic:.4f} actor {actor:.4f} reward {reward.mean():.3f}")


if __name__ == "__main__":
    main()
