import torch
import torch.multiprocessing as mp
import torch.nn as nn

EPISODES, STEPS = 44, 16


class Actor(nn.Module):
    def __init__(self, states=4, actions=3):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(states, 32), nn.Tanh(), nn.Linear(32, actions))

    def forward(self, state):
        return torch.distributions.Categorical(logits=self.net(state))


def simulate(episodes, results, seed):
    """Plays episodes and sends states with the actions an expert would take."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    rule = torch.randn(4, 3, generator=torch.Generator().manual_seed(99))
    for _ in range(episodes // 2):
        state = torch.randn(STEPS, 4)
        results.put((state.tolist(), (state @ rule).argmax(1).tolist()))


def learn(actor, results):
    optimizer = torch.optim.Adam(actor.parameters(), lr=1e-2)
    for episode in range(EPISODES):
        states, actions = results.get()
        policy = actor(torch.tensor(states))
        loss = -policy.log_prob(torch.tensor(actions)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if episode % 11 == 0:
            print(f"episode {episode}: imitation loss {loss.item():.4f}", flush=True)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    context = mp.get_context("fork")
    results = context.Queue()
    simulators = [context.Process(target=simulate, args=(EPISODES, results, seed)) for seed in (10, 11)]
    for simulator in simulators:
        simulator.start()
    actor = Actor()
    learn(actor, results)
    for simulator in simulators:
        simulator.join()
    print("learned from", EPISODES, "episodes")


if __name__ == "__main__":
    main()
