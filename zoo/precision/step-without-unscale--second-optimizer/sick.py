"""An actor and a critic that balance a cart: two optimizers, one scaler."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, outputs))


def push(state, action):
    """A cart on a rail that is to be kept at the middle."""
    position, speed = state.unbind(-1)
    speed = 0.95 * speed + 0.1 * (2 * action.float() - 1) + 0.02 * torch.randn_like(position)
    position = position + 0.2 * speed
    return torch.stack([position, speed], -1), -position.abs()


def rollout(actor, length=16, carts=32):
    state = torch.randn(carts, 2)
    states, actions, rewards = [], [], []
    with torch.no_grad():
        for _ in range(length):
            action = torch.distributions.Categorical(logits=actor(state)).sample()
            states.append(state)
            actions.append(action)
            state, reward = push(state, action)
            rewards.append(reward)
    returns, total = [], torch.zeros(carts)
    for reward in reversed(rewards):
        total = reward + 0.9 * total
        returns.insert(0, total)
    return torch.cat(states), torch.cat(actions), torch.cat(returns)


def main():
    torch.manual_seed(17)
    actor, critic = mlp(2, 2), mlp(2, 1)
    opt_actor = torch.optim.Adam(actor.parameters(), lr=5e-3)
    opt_critic = torch.optim.SGD(critic.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    for update in range(120):
        states, actions, returns = rollout(actor)
        with torch.autocast("cpu", dtype=torch.float16):
            value = critic(states).squeeze(-1)
            value_loss = F.smooth_l1_loss(value, returns)
            chosen = F.log_softmax(actor(states), -1).gather(1, actions[:, None]).squeeze(1)
            actor_loss = -(chosen * (returns - value.detach().float())).mean()
        opt_actor.zero_grad()
        opt_critic.zero_grad()
        scaler.scale(actor_loss).backward()
        scaler.scale(value_loss).backward()
        scaler.step(opt_actor)
        opt_critic.step()
        scaler.update()
        if update % 20 == 0:
            print(f"{update:4d}  return {returns.mean():.3f}  value loss {value_loss.item():.4f}")


if __name__ == "__main__":
    main()
