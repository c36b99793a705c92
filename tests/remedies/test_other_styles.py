"""Each remedy on a program in another style than the zoo's: other names, classes, frameworks; the line concerned changes, and no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from programs import Program

from trainsleuth.remedies import candidates, propose
from trainsleuth.remedies.catalogue import REMEDIES
from trainsleuth.remedies.propose import STRICT
from trainsleuth.rules.catalogue import all_rules

# rule, source, lines of the finding (`text|note`), evidence, lines taken out, lines put in
STYLES: list[tuple[str, str, list[str], list[str], list[str], list[str]]] = [
    (
        "nan/first-operation",
        """
        def apart(u, v):
            cosine = F.cosine_similarity(u, v).clamp(-1, 1)
            return torch.arccos(cosine) / math.pi
        """,
        ["return torch.arccos|the first bad number is made here"], [],
        ["return torch.arccos(cosine) / math.pi"], ["return torch.arccos(cosine.clamp(-1 + 1e-6, 1 - 1e-6)) / math.pi"],
    ),
    (
        "stall/mask-inverted",
        """
        class Reader(nn.Module):
            def forward(self, tokens, real):
                seen, _ = self.attention(tokens, tokens, tokens, key_padding_mask=real > 0)
                return self.out(seen.mean(1))
        """,
        ["seen, _ =|this mask hides 60 % of the places from the MultiheadAttention"], [],
        ["seen, _ = self.attention(tokens, tokens, tokens, key_padding_mask=real > 0)"],
        ["seen, _ = self.attention(tokens, tokens, tokens, key_padding_mask=~(real > 0))"],
    ),
    (
        "stall/no-gradient",
        """
        class Adapter(nn.Module):
            def __init__(self, inner, rank, strength):
                super().__init__()
                self.per_rank = strength // rank
                self.half = rank // 2

            def forward(self, x):
                return self.inner(x) + self.up(self.down(x)) * self.per_rank
        """,
        ["self.per_rank =|made here, and has no effect on the loss"], [],
        ["self.per_rank = strength // rank"], ["self.per_rank = strength / rank"],
    ),
    (
        "stall/params-not-in-optimizer",
        """
        class Reader(nn.Module):
            def settle(self, scale):
                with torch.no_grad():
                    for cell in self.cells:
                        cell.kernel = torch.nn.Parameter(cell.kernel * scale, requires_grad=True)
                    self.out.bias = nn.Parameter(torch.zeros(7))
                self.scale = scale
        """,
        ["cell.kernel =|a new parameter in the place of one of the same shape, made after the optimizer"], [],
        ["cell.kernel = torch.nn.Parameter(cell.kernel * scale, requires_grad=True)", "self.out.bias = nn.Parameter(torch.zeros(7))"],
        ["cell.kernel.data.copy_(cell.kernel * scale)", "self.out.bias.data.copy_(torch.zeros(7))"],
    ),
    (
        "stall/unregistered-modules",
        """
        class Chain:
            def __init__(self, steps):
                self.steps = steps

        class Net(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.chain = Chain([nn.Linear(width, width) for _ in range(3)])
        """,
        ["self.chain =|not registered"], ["chain.steps[0] (Linear), chain.steps[1] (Linear): gradient in every window"],
        [], ["self.chain_modules = torch.nn.ModuleList(self.chain.steps)"],
    ),
    (
        "schedule/never-stepped",
        """
        class Fit:
            def __init__(self, net, steps):
                self.opt = torch.optim.AdamW(net.parameters())
                self.plan = get_linear_schedule_with_warmup(self.opt, 100, steps)

            def update(self, loss):
                loss.backward()
                self.scaler.step(self.opt)
                self.scaler.update()
                self.opt.zero_grad()
        """,
        ["self.plan =|this LambdaLR is never stepped", "self.scaler.step(self.opt)|the optimizer steps here, without it"], [],
        [], ["self.plan.step()"],
    ),
    (
        "schedule/never-stepped",
        """
        class Task(LightningModule):
            def configure_optimizers(self):
                adam = torch.optim.Adam(self.parameters(), lr=0.1)
                plan = LinearLR(adam, start_factor=0.01, total_iters=500)
                return adam
        """,
        ["plan = LinearLR|this LinearLR is never stepped"], [],
        ["return adam"], ['return {"optimizer": adam, "lr_scheduler": {"scheduler": plan, "interval": "step"}}'],
    ),
    (
        "checkpoint/restores-nothing",
        """
        import torch

        def train(net, epochs):
            for epoch in range(epochs):
                if validate(net) > best:
                    best, weights = validate(net), net.state_dict()
        """,
        ["best, weights =|keeps references, which every later change changes, too"], [],
        ["best, weights = validate(net), net.state_dict()"], ["import copy", "best, weights = validate(net), copy.deepcopy(net.state_dict())"],
    ),
    (
        "data/samples-rewritten",
        """
        class Scans(Dataset):
            def __init__(self, volume):
                self.volume = volume
                self.volume[0] = 0

            def __getitem__(self, i):
                return self.transform(torch.from_numpy(self.volume[i]))
        """,
        ["def __getitem__|the sample is read here"], ["kept in `volume` (array): reading number 3 of a sample changed 100 % of its numbers"],
        ["return self.transform(torch.from_numpy(self.volume[i]))"], ["return self.transform(torch.from_numpy(self.volume[i].copy()))"],
    ),
    (
        "data/samples-rewritten",
        """
        class Scans(Dataset):
            def __getitem__(self, i):
                pixels = self.reader(i)
                return self.transform(torch.as_tensor(pixels))
        """,
        ["def __getitem__|the sample is read here"], ["kept in `reader.block` (array): reading number 3 of a sample changed 100 % of its numbers"],
        ["return self.transform(torch.as_tensor(pixels))"], ["return self.transform(torch.as_tensor(pixels).clone())"],
    ),
    (
        "ranks/diverged-weights",
        """
        import torch
        import torch.distributed as dist

        class Loop:
            def __init__(self, net):
                self.net = DDP(net)

            def step(self, x, y):
                loss = inner(self.net).loss(x, y)
                loss.backward()
                self.opt.step()
        """,
        ["loss = inner|the model that is wrapped is called here, past the wrapper", "self.net = DDP|wrapped here"], [],
        [],
        ["for p in self.net.parameters():", "if p.grad is not None:", "dist.all_reduce(p.grad)", "p.grad /= dist.get_world_size()"],
    ),
    (
        "hang/queue-nobody-feeds",
        """
        import queue

        class Ahead:
            def work(self):
                for batch in self.source:
                    self.ready.put(batch)

            def stop(self):
                self.done.set()
                self.helper.join()
        """,
        ["self.helper.join()|waits for the thread to end", "self.ready.put(batch)|Thread-1 puts into a full queue here"], [],
        [],
        ["from queue import Empty", "while self.helper.is_alive():", "try:", "self.ready.get(timeout=0.1)", "except Empty:", "pass"],
    ),
    (
        "hang/pipe-nobody-reads",
        """
        class Tool:
            def __init__(self, command):
                self.child = Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE)

            def ask(self, text):
                self.child.stdin.write(text)
                return self.child.stdout.readline()
        """,
        ["return self.child.stdout|reads from the process here", "self.child = Popen|and the process writes here, to a pipe that is full"], [],
        ["self.child = Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE)"], ["self.child = Popen(command, stdin=PIPE, stdout=PIPE)"],
    ),
    (
        "stall/params-not-in-optimizer",
        """
        def build(model, cfg):
            named = model.named_parameters()
            decay = [p for n, p in named if p.ndim > 1]
            rest = [p for n, p in named if p.ndim < 2]
            groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest}]
            return torch.optim.AdamW(groups, lr=cfg.lr)
        """,
        ["return torch.optim|it was built from other parameters"], [],
        ["named = model.named_parameters()"], ["named = list(model.named_parameters())"],
    ),
    (
        "stall/params-not-in-optimizer",
        """
        def make(net, lr):
            body, head = net.encoder.parameters(), net.head.parameters()
            logging.info(f"{count(body)} weights")
            opt = torch.optim.Adam([{"params": body, "lr": lr / 10}, {"params": head, "lr": lr}])
            return opt
        """,
        ["opt = torch.optim|it was built from other parameters"], [],
        ["body, head = net.encoder.parameters(), net.head.parameters()"], ["body, head = list(net.encoder.parameters()), net.head.parameters()"],
    ),
    (
        "stall/params-not-in-optimizer",
        """
        class Engine:
            def __init__(self, net):
                groups = [{"params": (p for p in net.body.parameters() if p.ndim > 1)}, {"params": net.head.parameters(), "lr": 0.1}]
                for group in groups:
                    print(sum(p.numel() for p in group["params"]))
                self.opt = torch.optim.SGD(groups, lr=0.01)
        """,
        ["self.opt =|it was built from other parameters"], [],
        ['groups = [{"params": (p for p in net.body.parameters() if p.ndim > 1)}, {"params": net.head.parameters(), "lr": 0.1}]'],
        ['groups = [{"params": [p for p in net.body.parameters() if p.ndim > 1]}, {"params": list(net.head.parameters()), "lr": 0.1}]'],
    ),
    (
        "stall/params-not-in-optimizer",
        """
        def make(params, extra, lr):
            print(sum(p.numel() for p in params))
            return SGD([{"params": params}, {"params": extra}], lr)

        def main():
            opt = make(net.body.parameters(), net.head.parameters(), 0.1)
        """,
        ["return SGD|it was built from other parameters", "opt = make|asked for here"], [],
        ["opt = make(net.body.parameters(), net.head.parameters(), 0.1)"], ["opt = make(list(net.body.parameters()), net.head.parameters(), 0.1)"],
    ),
    (
        "stall/params-not-in-optimizer",
        """
        def fit(model, optimizer, loader):
            model = copy.deepcopy(model)
            best = copy.deepcopy(model.state_dict())
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()

        net = Net()
        opt = SGD(net.parameters(), 0.1)
        fit(net, opt, loader)
        """,
        ["opt = SGD|it was built from other parameters"], [], ["model = copy.deepcopy(model)"], [],
    ),
    (
        "stall/params-not-in-optimizer",
        """
        net = Net()
        opt = SGD(net.parameters(), 0.1)
        Runner(deepcopy(net), optimizer=opt).go()
        """,
        ["opt = SGD|it was built from other parameters"], [], ["Runner(deepcopy(net), optimizer=opt).go()"], ["Runner(net, optimizer=opt).go()"],
    ),
    (
        "stall/optimizer-never-steps",
        """
        for step, batch in enumerate(loader):
            with accelerator.accumulate(net):
                accelerator.backward(net(batch))
                if step % 4 == 0:
                    opt.step()
                    opt.zero_grad()
        """,
        ["if step|the step stands under this condition, which never held"], [], ["if step % 4 == 0:"], ["if accelerator.sync_gradients:"],
    ),
    (
        "stall/optimizer-never-steps",
        """
        class Loop:
            def epoch(self):
                for i, batch in enumerate(self.loader):
                    with self.acc.autocast(), self.acc.accumulate(self.net):
                        self.acc.backward(self.net(batch))
                        full = (i + 1) % self.every == 0
                        if full and self.training:
                            self.opt.step()
        """,
        ["self.opt.step()|the step stands here"], [], ["if full and self.training:"], ["if self.acc.sync_gradients and self.training:"],
    ),
    (
        "hang/queue-nobody-feeds",
        """
        class Scorer:
            def __init__(self, threads):
                self.pool = ThreadPoolExecutor(threads, thread_name_prefix="score")

            def fold(self, xs):
                return self.together([self.pool.submit(one, x) for x in xs])

            def together(self, parts):
                return sum(part.result() for part in as_completed(parts))

            def score(self, folds):
                jobs = [self.pool.submit(self.fold, xs) for xs in folds]
                return [job.result() for job in jobs]

            def close(self):
                self.pool.shutdown(wait=True)
        """,
        ["return sum(|a task of the pool waits for another task here"], [],
        ["return self.together([self.pool.submit(one, x) for x in xs])"],
        ["self.pool_inner = ThreadPoolExecutor(threads)", "return self.together([self.pool_inner.submit(one, x) for x in xs])",
         "self.pool_inner.shutdown(wait=True)"],
    ),
    (
        "hang/queue-nobody-feeds",
        """
        def pages(urls):
            with futures.ThreadPoolExecutor(max_workers=4) as pool:
                def page(url):
                    return list(pool.map(fetch, links(url)))

                return list(pool.map(page, urls))
        """,
        ["return list(pool.map(fetch|a task of the pool waits for another task here"], [],
        ["with futures.ThreadPoolExecutor(max_workers=4) as pool:", "return list(pool.map(fetch, links(url)))"],
        ["with futures.ThreadPoolExecutor(max_workers=4) as pool_inner, futures.ThreadPoolExecutor(max_workers=4) as pool:",
         "return list(pool_inner.map(fetch, links(url)))"],
    ),
    (
        "hang/queue-nobody-feeds",
        """
        def fold(pool, xs):
            return sum(f.result() for f in [pool.submit(one, x) for x in xs])

        def main():
            threads = ThreadPoolExecutor(4, "scorer")
            jobs = [threads.submit(fold, threads, xs) for xs in folds]
            print([job.result() for job in jobs])
        """,
        ["return sum(|a task of the pool waits for another task here"], [],
        ["jobs = [threads.submit(fold, threads, xs) for xs in folds]"],
        ["threads_inner = ThreadPoolExecutor(4)", "jobs = [threads.submit(fold, threads_inner, xs) for xs in folds]"],
    ),
    (
        "data/labels-constant",
        """
        def bucket(score):
            part = score / 100
            return 1 + BUCKETS * part.to(torch.int64)  # counted from 1

        loss = criterion(net(x), bucket(score) - 1)
        """,
        ["loss = criterion|receives these labels"], [],
        ["return 1 + BUCKETS * part.to(torch.int64)  # counted from 1"], ["return 1 + (BUCKETS * part).to(torch.int64)  # counted from 1"],
    ),
    (
        "data/labels-constant",
        """
        cell = row.long() * WIDTH + column.long()
        hot = (heat > 3).long() * 2
        label = min(int(rng.random()) * CLASSES, CLASSES - 1)
        loss = criterion(net(x), label)
        """,
        ["loss = criterion|receives these labels"], [],
        ["label = min(int(rng.random()) * CLASSES, CLASSES - 1)"], ["label = min(int(rng.random() * CLASSES), CLASSES - 1)"],
    ),
    (
        "autograd/custom-backward-wrong",
        """
        from torch.autograd import Function

        class Gate(Function):
            # soft
            @staticmethod
            def forward(ctx, x, w, *rest):
                ctx.size, ctx.rest = x.size(0), rest
                if ctx.needs_input_grad[0]:
                    ctx.save_for_backward(x, w)
                    ctx.kept = True
                ctx.open = share = w.sigmoid()
                y = mix(x, share)
                return y.where(y > 0, 0.1 * y)

            @staticmethod
            @once_differentiable
            def backward(ctx, g):
                return g * ctx.open, None

        def mix(x, share):
            return x * share + x.tanh()

        gate = Gate.apply
        """,
        ["return g * ctx|what backward gives back for input 0", "def forward|of this forward"], [],
        ["class Gate(Function):", "def forward(ctx, x, w, *rest):", "ctx.size, ctx.rest = x.size(0), rest", "if ctx.needs_input_grad[0]:",
         "ctx.save_for_backward(x, w)", "ctx.kept = True", "ctx.open = share = w.sigmoid()", "", "@staticmethod", "@once_differentiable",
         "def backward(ctx, g):", "return g * ctx.open, None"],
        ["class Gate:", "def apply(x, w, *rest):", "share = w.sigmoid()"],
    ),
    (
        "autograd/custom-backward-wrong",
        """
        import torch

        class Product(torch.autograd.Function):
            @staticmethod
            def forward(x, y):
                return x * torch.exp(y)

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*inputs)

            @staticmethod
            def backward(ctx, g):
                x, y = ctx.saved_tensors
                return g * y, g * x
        """,
        ["return g * y|what backward gives back for input 0"], [],
        ["class Product(torch.autograd.Function):", "def forward(x, y):", "", "@staticmethod", "def setup_context(ctx, inputs, output):",
         "ctx.save_for_backward(*inputs)", "", "@staticmethod", "def backward(ctx, g):", "x, y = ctx.saved_tensors", "return g * y, g * x"],
        ["class Product:", "def apply(x, y):"],
    ),
    (
        "schedule/warmup-never-ends",
        """
        def schedule(opt, rows, cfg):
            total = len(rows) * cfg["epochs"]
            warm = int(0.1 * total)
            return get_linear_schedule_with_warmup(opt, warm, total)

        def main(cfg):
            args = TrainingArguments("out", per_device_train_batch_size=cfg["size"], gradient_accumulation_steps=cfg["every"])
            Trainer(net, args, train_dataset=train, optimizers=(opt, schedule(opt, train, cfg))).train()
        """,
        ["Trainer(|asked for here", "return get_linear|this schedule"], [],
        ['total = len(rows) * cfg["epochs"]'], ['total = -(-len(rows) // (cfg["size"] * cfg["every"])) * cfg["epochs"]'],
    ),
    (
        "schedule/warmup-never-ends",
        """
        class Net(L.LightningModule):
            def train_dataloader(self):
                return DataLoader(self.train_ds, batch_size=self.hparams.size, shuffle=True)

            def val_dataloader(self):
                return DataLoader(self.val_ds, batch_size=400)

            def configure_optimizers(self):
                optimizer = torch.optim.AdamW(self.parameters())
                warm = 0.1 * len(self.train_ds) * self.hparams.epochs
                plan = LambdaLR(optimizer, lambda step: min(1.0, step / warm))
                return [optimizer], [{"scheduler": plan, "interval": "step"}]
        """,
        ["plan = LambdaLR|this schedule"], [],
        ["warm = 0.1 * len(self.train_ds) * self.hparams.epochs"], ["warm = 0.1 * -(-len(self.train_ds) // self.hparams.size) * self.hparams.epochs"],
    ),
    (
        "stall/inputs-and-targets-misaligned",
        """
        def pack(rows):
            traces, shapes = zip(*rows)
            lengths = torch.tensor([len(t) for t in traces])
            lengths, order = lengths.sort(descending=True)
            padded = pad_sequence(traces, batch_first=True)[order]
            return padded, lengths, torch.stack(shapes)

        def train():
            loss = criterion(net(padded, lengths), shapes)
        """,
        ["loss = crit|inputs and targets meet here"], [],
        ["return padded, lengths, torch.stack(shapes)"], ["return padded, lengths, torch.stack(shapes)[order]"],
    ),
    (
        "stall/inputs-and-targets-misaligned",
        """
        def collate(batch):
            ids, tags = zip(*batch)
            sizes = torch.tensor([len(i) for i in ids])
            by_size = torch.sort(sizes, dim=0, descending=True).indices
            return {"ids": pad_sequence(ids).index_select(1, by_size), "sizes": sizes[by_size], "tags": torch.LongTensor(tags)}

        def train():
            loss = criterion(net(batch["ids"]), batch["tags"])
        """,
        ["loss = crit|inputs and targets meet here"], [],
        ['return {"ids": pad_sequence(ids).index_select(1, by_size), "sizes": sizes[by_size], "tags": torch.LongTensor(tags)}'],
        ['return {"ids": pad_sequence(ids).index_select(1, by_size), "sizes": sizes[by_size], "tags": torch.LongTensor(tags)[by_size]}'],
    ),
    (
        "stall/params-not-in-optimizer",
        """
        def fit(cfg):
            net = build(cfg)
            opt = make_optimizer(net, cfg.lr)
            net = fresh_head(net, 12)
            train(net, opt)

        def fresh_head(net, n):
            net.head = nn.Linear(net.width, n)
            return net

        def make_optimizer(net, lr):
            return torch.optim.AdamW(sorted_groups(net), lr=lr)
        """,
        ["return torch.optim|it was built from other parameters", "opt = make|asked for here", "net.head =|made after the optimizer"], [],
        ["net = fresh_head(net, 12)"], ["net = fresh_head(net, 12)"],
    ),
    (
        "stall/params-not-in-optimizer",
        """
        def make_optimizer(net, lr):
            return torch.optim.AdamW(sorted_groups(net, 0.1), lr=lr)
        """,
        ["return torch.optim|it was built from other parameters"], [],
        ["return torch.optim.AdamW(sorted_groups(net, 0.1), lr=lr)"],
        ["optimizer = torch.optim.AdamW(sorted_groups(net, 0.1), lr=lr)",
         'held = {id(p) for group in optimizer.param_groups for p in group["params"]}',
         'optimizer.add_param_group({"params": [p for p in net.parameters() if p.requires_grad and id(p) not in held]})',
         "return optimizer"],
    ),
    (
        "stall/params-frozen",
        """
        def unlock(self, stages):
            for stage in stages:
                stage.requires_grad = self.cfg.unlock
        """,
        ["stage.requires_grad =|sets an attribute of the Sequential, not of its parameters"], [],
        ["stage.requires_grad = self.cfg.unlock"], ["stage.requires_grad_(self.cfg.unlock)"],
    ),
    (
        "stall/inputs-and-targets-misaligned",
        """
        def longest_first(batch):
            words, tags = zip(*batch)
            lengths = torch.tensor([len(w) for w in words])
            order = lengths.argsort(descending=True)
            padded = pad_sequence(words, batch_first=True)[order]
            return padded, lengths[order], torch.tensor(tags)

        def train():
            for padded, lengths, tags in loader:
                loss = criterion(net(padded, lengths), tags)
        """,
        ["loss = crit|inputs and targets meet here"], [],
        ["return padded, lengths[order], torch.tensor(tags)"], ["return padded, lengths[order], torch.tensor(tags)[order]"],
    ),
    (
        "stall/inputs-and-targets-misaligned",
        """
        def pad_batch(items):
            seqs, labels = zip(*items)
            labels = torch.tensor(labels)
            seqs = sorted(seqs, key=lambda s: s.shape[0], reverse=True)
            return pad_sequence(seqs), labels

        def train():
            for seqs, labels in loader:
                loss = criterion(net(seqs), labels)
        """,
        ["loss = crit|inputs and targets meet here"], [],
        ["seqs, labels = zip(*items)", "seqs = sorted(seqs, key=lambda s: s.shape[0], reverse=True)"],
        ["seqs, labels = zip(*sorted(items, key=lambda sample: sample[0].shape[0], reverse=True))"],
    ),
    (
        "stall/inputs-and-targets-misaligned",
        """
        def collate(batch):
            ids, tags = map(list, zip(*batch))
            ids.sort(key=len)
            return pad_sequence(ids), torch.tensor(tags)

        def train():
            for ids, tags in loader:
                loss = criterion(net(ids), tags)
        """,
        ["loss = crit|inputs and targets meet here"], [],
        ["ids, tags = map(list, zip(*batch))", "ids.sort(key=len)"],
        ["ids, tags = map(list, zip(*sorted(batch, key=lambda sample: len(sample[0]))))"],
    ),
    (
        "stall/inputs-and-targets-misaligned",
        """
        def compute_loss(self, model, inputs):
            out = model(**inputs)
            loss = F.cross_entropy(
                out.logits.view(bsz, n_tags, length),
                inputs["labels"],
            )
        """,
        ["loss = F.cross|meets its targets here; `permute(0, 2, 1)` would move them"], [],
        ["out.logits.view(bsz, n_tags, length),"], ["out.logits.permute(0, 2, 1),"],
    ),
    (
        "stall/inputs-and-targets-misaligned",
        """
        def batches(docs, labels, size):
            order = np.random.permutation(len(docs))
            docs = [docs[i] for i in order]
            labels = labels[np.random.permutation(len(labels))]
            return zip(docs, labels)

        loss = criterion(net(docs), labels)
        """,
        ["loss = crit|inputs and targets meet here"], [],
        ["labels = labels[np.random.permutation(len(labels))]"], ["labels = labels[order]"],
    ),
    (
        "stall/no-gradient",
        """
        for real in loader:
            fake = gen(torch.randn(64, 8)).detach()
            d_loss = bce(critic(real), one) + bce(critic(fake), zero)
            d_loss.backward()
            opt_d.step()
            g_loss = bce(critic(fake), one)
            g_loss.backward()
            opt_g.step()
        """,
        [".detach()|`.detach()` cuts the graph here"], [],
        ["fake = gen(torch.randn(64, 8)).detach()", "d_loss = bce(critic(real), one) + bce(critic(fake), zero)"],
        ["fake = gen(torch.randn(64, 8))", "d_loss = bce(critic(real), one) + bce(critic(fake.detach()), zero)"],
    ),
    (
        "stall/params-not-in-optimizer", "opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=a.lr)\n",
        ["opt =|it was built from other parameters"], [],
        ["opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=a.lr)"],
        ["opt = torch.optim.AdamW(model.parameters(), lr=a.lr)"],
    ),
    (
        "stall/params-not-in-optimizer", "opt = SGD(filter(lambda w: w.requires_grad, net.parameters()), lr=0.1)\n",
        ["opt =|it was built from other parameters"], [],
        ["opt = SGD(filter(lambda w: w.requires_grad, net.parameters()), lr=0.1)"], ["opt = SGD(net.parameters(), lr=0.1)"],
    ),
    (
        "ranks/collective-mismatch",
        """
        def mean_of(value):
            t = torch.tensor(float(value))
            dist.all_reduce(t)
            return t.item()

        def evaluate(model):
            return mean_of(model(x).mean())

        def main():
            train()
            if rank == 0:
                acc = evaluate(model)
                print(acc)
            dist.barrier()
        """,
        ["dist.all_reduce|only some ranks come here"], [],
        ["acc = evaluate(model)"], ["acc = evaluate(model)"],
    ),
    (
        "nan/bad-sample",
        """
        def __getitem__(self, i):
            past = self.s[i : i + 20]
            m, sd = past.mean(), past.std()
            return (past - m) / sd
        """,
        ["return (past|made here"], [], ["return (past - m) / sd"], ["return (past - m) / (sd + 1e-8)"],
    ),
    (
        "ranks/diverged-weights",
        """
        class Tagger(nn.Module):
            def loss(self, tok, y):
                return F.cross_entropy(self(tok), y)

        model = DistributedDataParallel(Tagger())
        loss = model.module.loss(tok, y)
        """,
        ["return F.cross|the model that is wrapped is called here, past the wrapper", "model = Dist|wrapped here"], [],
        ["loss = model.module.loss(tok, y)"], ["loss = Tagger.loss(model, tok, y)"],
    ),
    (
        "ranks/diverged-weights",
        """
        def main():
            trunk, top = Trunk(), Top()
            trunk = DistributedDataParallel(trunk, broadcast_buffers=False)
            opt = torch.optim.SGD(list(trunk.parameters()) + list(top.parameters()), lr=0.1)
            loss = top(trunk(x)).sum()
        """,
        ["loss = top|trained here, outside of the wrapper", "trunk = Dist|wrapped here, without them"], [],
        [], ["top = DistributedDataParallel(top, broadcast_buffers=False)"],
    ),
    (
        "ranks/same-data-on-every-rank",
        """
        def main():
            net, opt = acc.prepare(net, opt)
            for epoch in range(3):
                for x, y in batches:
                    acc.backward(net(x).sum())
        """,
        ["acc.backward|the same loss on every rank"], [],
        [], ["batches = acc.prepare(batches)"],
    ),
    (
        "schedule/decays-to-zero-early",
        """
        def main():
            opt = torch.optim.AdamW(net.parameters())
            plan = linear(opt, 2, 10)
            for epoch in range(10):
                for x in batches:
                    opt.zero_grad()
                    net(x).backward()
                    opt.step()
                    plan.step()
        """,
        ["opt = torch|the learning rate it starts with"], [],
        ["plan.step()"], ["plan.step()"],
    ),
    (
        "stall/inputs-and-targets-misaligned",
        """
        class Blocks(Dataset):
            def __getitem__(self, i):
                chunk = self.ids[i * self.block : (i + 1) * self.block + 1]
                return {"input_ids": chunk[:-1], "labels": chunk[1:]}  # one block
        """,
        ["return {|inputs and targets meet here"], [],
        ['return {"input_ids": chunk[:-1], "labels": chunk[1:]}  # one block'],
        ['return {"input_ids": chunk[:-1], "labels": chunk[:-1]}  # one block'],
    ),
    (
        "stall/inputs-and-targets-misaligned",
        """
        def collate(rows):
            batch = torch.stack(rows)
            return batch[:, 1:], batch[:, :-1]
        """,
        ["return batch|inputs and targets meet here"], [],
        ["return batch[:, 1:], batch[:, :-1]"], ["return batch[:, :-1], batch[:, 1:]"],
    ),
    (
        "schedule/warmup-never-ends",
        """
        class Net(L.LightningModule):
            def configure_optimizers(self):
                optimizer = torch.optim.AdamW(self.parameters())
                plan = OneCycleLR(optimizer, 1e-3, total_steps=self.trainer.estimated_stepping_batches)
                return {"optimizer": optimizer, "lr_scheduler": plan}
        """,
        ["plan = OneCycleLR|this schedule"], [],
        ['return {"optimizer": optimizer, "lr_scheduler": plan}'],
        ['return {"optimizer": optimizer, "lr_scheduler": dict(scheduler=plan, interval="step")}'],
    ),
    (
        "schedule/decays-to-zero-early",
        """
        class Net(L.LightningModule):
            def configure_optimizers(self):
                optimizer = torch.optim.AdamW(self.parameters())
                plan = CosineAnnealingLR(optimizer, self.epochs)
                return [optimizer], [{"scheduler": plan, "interval": "step"}]
        """,
        ["plan = Cosine|this schedule"], [],
        ['return [optimizer], [{"scheduler": plan, "interval": "step"}]'],
        ['return [optimizer], [{"scheduler": plan, "interval": "epoch"}]'],
    ),
    (
        "precision/clip-before-unscale",
        """
        class Trainer:
            def clip(self):
                clip_grad_norm_(self.net.parameters(), 1.0)

            def norm(self):
                self.scaler.unscale_(self.opt)
                return self.net.weight.grad.norm()

            def step(self, loss):
                self.scaler.scale(loss).backward()
                self.clip()
                self.log(self.norm())
                self.scaler.step(self.opt)
        """,
        ["clip_grad_norm_|clips scaled gradients"], [],
        ["self.scaler.unscale_(self.opt)"], ["self.scaler.unscale_(self.opt)"],
    ),
    (
        "stall/double-softmax",
        """
        class Tagger(pl.LightningModule):
            def __init__(self):
                self.act = nn.Softmax(dim=-1)

            def forward(self, tokens):
                hidden = self.encoder(tokens)
                return self.act(self.head(hidden))  # scores
        """,
        ["return self.act|this softmax", "self.act = nn|this softmax"], [],
        ["return self.act(self.head(hidden))  # scores"], ["return self.head(hidden)  # scores"],
    ),
    (
        "stall/double-softmax",
        """
        def step(net, batch):
            probability = net(batch["x"]).sigmoid()
            return bce(probability, batch["y"])
        """,
        ["sigmoid()|the sigmoid"], [], ['probability = net(batch["x"]).sigmoid()'], ['probability = net(batch["x"])'],
    ),
    (
        "stall/wrong-softmax-axis",
        """
        class Net(nn.Module):
            def __init__(self):
                self.out = nn.LogSoftmax(dim=0)
        """,
        ["nn.LogSoftmax|the softmax"], [], ["self.out = nn.LogSoftmax(dim=0)"], ["self.out = nn.LogSoftmax(dim=-1)"],
    ),
    (
        "stall/wrong-softmax-axis", "out = F.log_softmax(self.head(c), dim=-1)\n",
        ["log_softmax|this softmax; the classes are axis 1"], [],
        ["out = F.log_softmax(self.head(c), dim=-1)"], ["out = F.log_softmax(self.head(c), dim=1)"],
    ),
    (
        "stall/wrong-softmax-axis", "log_p = scores.log_softmax(0)\n", ["log_softmax"], [],
        ["log_p = scores.log_softmax(0)"], ["log_p = scores.log_softmax(-1)"],
    ),
    (
        "stall/no-gradient",
        """
        class Siamese(nn.Module):
            def embed(self, image):
                # one branch
                return F.normalize(self.backbone(image).detach(), dim=1)
        """,
        [".detach()|`.detach()` cuts the graph here"], [],
        ["return F.normalize(self.backbone(image).detach(), dim=1)"], ["return F.normalize(self.backbone(image), dim=1)"],
    ),
    (
        "stall/no-gradient",
        """
        for x, y in loader:
            with torch.no_grad():
                # frozen? no
                z = encoder(x)
                z = z / z.norm()
            loss = f(head(z), y)
        """,
        ["with torch.no_grad|gradients are off here"], [],
        ["with torch.no_grad():", "# frozen? no", "z = encoder(x)", "z = z / z.norm()"], ["# frozen? no", "z = encoder(x)", "z = z / z.norm()"],
    ),
    (
        "stall/no-gradient",
        """
        class Model(nn.Module):
            @torch.inference_mode()
            def features(self, x):
                return self.stem(x)
        """,
        ["return self.stem|`no_grad` is on here"], [], ["@torch.inference_mode()"], [],
    ),
    (
        "stall/optimizer-never-steps",
        """
        class Engine:
            def update(self, loss):
                self.accelerator.backward(loss)
                self.optim.step
        """,
        ["self.optim.step|the step stands here"], [], ["self.optim.step"], ["self.optim.step()"],
    ),
    (
        "stall/optimizer-never-steps",
        """
        def epoch(batches, opt):
            for n, batch in enumerate(tqdm(batches), 1):
                model(batch).backward()
                if n % 64 == 0:
                    opt.step()
        """,
        ["opt.step()|the step stands here"], [], ["if n % 64 == 0:"], ["if n % 64 == 0 or n == len(batches):"],
    ),
    (
        "stall/gradients-never-cleared",
        """
        class Fit:
            def one(self, batch):
                self.scaler.scale(self.loss(batch)).backward()
                self.scaler.step(self.adam)
                self.scaler.update()
        """,
        ["self.scaler.step|uses this window's gradient"], [], [], ["self.adam.zero_grad()"],
    ),
    (
        "stall/learning-rate-zero",
        """
        class Config:
            pass

        def make(net, cfg):
            scaled = cfg.base * (cfg.batch // 512)
            return torch.optim.AdamW(net.parameters(), lr=scaled)
        """,
        ["torch.optim.AdamW|built here"], [], ["scaled = cfg.base * (cfg.batch // 512)"], ["scaled = cfg.base * (cfg.batch / 512)"],
    ),
    (
        "stall/unregistered-modules", "self.item = 0.1 * nn.Parameter(torch.randn(30, 4) + shift).t()\n",
        ["self.item|a plain tensor"], ["item (Tensor): gradient in every window looked at, moved by 0"],
        ["self.item = 0.1 * nn.Parameter(torch.randn(30, 4) + shift).t()"],
        ["self.item = nn.Parameter(0.1 * (torch.randn(30, 4) + shift).t())"],
    ),
    (
        "stall/unregistered-modules",
        """
        class Stack(torch.nn.Module):
            def __init__(self, n):
                super().__init__()
                self.blocks = [Block(n) for _ in range(4)]  # towers
                self.names = ["a", "b"]
        """,
        ["self.blocks ="], ["blocks[0] (Block), blocks[1] (Block): gradient in every window looked at, moved by 0"],
        ["self.blocks = [Block(n) for _ in range(4)]  # towers"],
        ["self.blocks = torch.nn.ModuleList([Block(n) for _ in range(4)])  # towers"],
    ),
    (
        "stall/shape-broadcast",
        """
        class Regressor(pl.LightningModule):
            def training_step(self, batch, i):
                x, y = batch
                return F.mse_loss(self(x), y)
        """,
        ["F.mse_loss"], ["shapes (32, 1) and (32,): 1,024 differences instead of 32"],
        ["return F.mse_loss(self(x), y)"], ["return F.mse_loss(self(x).squeeze(-1), y)"],
    ),
    (
        "stall/vanishing-gradient",
        """
        class Deep(nn.Module):
            def __init__(self):
                self.first = nn.Linear(4, 9)
                self.squash = nn.Tanh()

            def forward(self, x):
                return torch.sigmoid(self.last(self.squash(self.first(x))))
        """,
        ["self.first|this layer hardly moves"], [], ["self.squash = nn.Tanh()"], ["self.squash = nn.ReLU()"],
    ),
    (
        "stall/dead-units",
        """
        CONFIG = {"lr": 0.5, "width": 64}

        def build(model):
            return torch.optim.SGD(model.parameters(), lr=CONFIG["lr"], momentum=0.9)
        """,
        ["torch.optim.SGD|its steps killed them: they were alive at the start"], [],
        ['CONFIG = {"lr": 0.5, "width": 64}'], ['CONFIG = {"lr": 0.05, "width": 64}'],
    ),
    (
        "stall/scaler-skips-steps",
        """
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x)
        """,
        ["torch.autocast"], [], ['with torch.autocast("cuda", dtype=torch.float16):'], ['with torch.autocast("cuda", dtype=torch.bfloat16):'],
    ),
    (
        "stall/scaler-skips-steps",
        """
        trainer = L.Trainer(
            max_epochs=3,
            precision="16-mixed",
        )
        trainer.fit(module)
        """,
        ["trainer.fit|skipped here"], [], ['precision="16-mixed",'], ['precision="bf16-mixed",'],
    ),
    (
        "stall/inputs-and-targets-misaligned",
        """
        def shuffled(signals, marks):
            p = np.random.permutation(len(signals))
            signals = signals[p]
            return TensorDataset(torch.tensor(signals), torch.tensor(marks)), zip(signals, marks)
        """,
        ["return TensorDataset"], [], [], ["marks = marks[p]"],
    ),
    (
        "mode/train-during-validation",
        """
        class Fitter:
            def score(self):
                right = 0
                with torch.no_grad():
                    for x, y in self.val:
                        right += (self.net(x).argmax(1) == y).sum()
                return right

            def fit(self):
                for _ in range(9):
                    self.net.train()
                    self.pass_over(self.data)
                    self.score()
        """,
        ["self.net(x).argmax|runs in train mode, without gradients"], [], [], ["self.net.eval()"],
    ),
    (
        "data/labels-out-of-range", "loss = self.criterion(output, batch['label'])\n", ["self.criterion"],
        ["labels of the failing batch run from 1 to 10, the output has 10 columns", "they look as if they were counted from 1"],
        ["loss = self.criterion(output, batch['label'])"], ["loss = self.criterion(output, batch['label'] - 1)"],
    ),
    (
        "data/labels-off-by-one", "cost = nll(log_p, grade.view(-1))\n", ["nll("], ["1,000 labels looked at: none is 0, each of 1 to 6 occurs"],
        ["cost = nll(log_p, grade.view(-1))"], ["cost = nll(log_p, grade.view(-1) - 1)"],
    ),
    (
        "data/labels-one-hot",
        """
        def loss_of(net, x, onehot):
            target = torch.argmax(onehot, 0)
            return F.cross_entropy(net(x), target)
        """,
        ["torch.argmax|the argmax"], ["output (32, 10), labels (10,): one label per class, not per sample"],
        ["target = torch.argmax(onehot, 0)"], ["target = torch.argmax(onehot, 1)"],
    ),
    (
        "data/labels-constant", "def collate(rows):\n    return rows, one_hot(rows).max(dim=-1)[0]\n", ["return rows"], [],
        ["return rows, one_hot(rows).max(dim=-1)[0]"], ["return rows, one_hot(rows).max(dim=-1)[1]"],
    ),
    (
        "data/not-normalised",
        """
        import torch.nn as nn

        class Net(nn.Module):
            def __init__(self, wide):
                super().__init__()
                self.inp = nn.Linear(wide, 8)
                self.out = nn.Linear(8, 2)

            def forward(self, x):
                return self.out(self.inp(x).relu())
        """,
        ["self.inp(x)|goes in here"], [], ["self.inp = nn.Linear(wide, 8)"],
        ["self.inp = nn.Sequential(nn.BatchNorm1d(wide, affine=False), nn.Linear(wide, 8))"],
    ),
    (
        "data/not-shuffled",
        """
        class Data(L.LightningDataModule):
            def train_dataloader(self):
                return torch.utils.data.DataLoader(
                    self.train,
                    batch_size=64,
                    shuffle=False,
                )
        """,
        ["torch.utils.data.DataLoader|does not shuffle"], [], ["shuffle=False,"], ["shuffle=True,"],
    ),
    (
        "schedule/decays-to-zero-early",
        """
        class Loop:
            def __init__(self, net, train, n):
                self.train = train
                self.opt = Adam(net.parameters())
                self.plan = CosineAnnealingLR(self.opt, T_max=n)

            def fit(self):
                for _ in range(self.n):
                    for batch in tqdm(self.train):
                        self.net(batch).backward()
                        self.opt.step()
                        self.plan.step()
        """,
        ["CosineAnnealingLR|this schedule ends too early"], [],
        ["self.plan = CosineAnnealingLR(self.opt, T_max=n)"], ["self.plan = CosineAnnealingLR(self.opt, T_max=n * len(self.train))"],
    ),
    (
        "schedule/warmup-never-ends",
        """
        args = TrainingArguments(
            output_dir="out",
            warmup_steps=5000,
        )
        Trainer(model, args).train()
        """,
        ["Trainer(model, args)|asked for here"], ["at this pace it reaches 0.001 after about 5,000 steps; the run had 400"],
        ["warmup_steps=5000,"], ["warmup_steps=40,"],
    ),
    (
        "schedule/warmup-never-ends",
        """
        @dataclass
        class Recipe:
            rate: float = 5e-4
            warmup_steps: int = 20_000

        args = TrainingArguments(output_dir="out", **asdict(Recipe()))
        Trainer(model, args).train()
        """,
        ["Trainer(model, args)|the optimizer"], ["at this pace it reaches 0.0005 after about 20,512 steps; the run had 240"],
        ["warmup_steps: int = 20_000"], ["warmup_steps: int = 23"],
    ),
    (
        "data/labels-out-of-range", "loss = self.criterion(logits, y)\n", ["loss ="], ["they are -1 or 1, and nothing in between"],
        ["loss = self.criterion(logits, y)"], ["loss = self.criterion(logits, (y + 1) / 2)"],
    ),
    (
        "data/not-shuffled", "loader = DataLoader(train, batch_sampler=Buckets(train.lengths, batch_size), collate_fn=pad)\n", ["loader ="], [],
        ["loader = DataLoader(train, batch_sampler=Buckets(train.lengths, batch_size), collate_fn=pad)"],
        ["loader = DataLoader(train, collate_fn=pad, batch_size=batch_size, shuffle=True)"],
    ),
    (
        "data/not-shuffled", "loader = DataLoader(train, 32, sampler=InOrder(train))\n", ["loader ="], [],
        ["loader = DataLoader(train, 32, sampler=InOrder(train))"], ["loader = DataLoader(train, 32, shuffle=True)"],
    ),
    (
        "checkpoint/random-inside", "self.call = partial(checkpoint, use_reentrant=False, preserve_rng_state=config.keep)\n", ["self.call"], [],
        ["self.call = partial(checkpoint, use_reentrant=False, preserve_rng_state=config.keep)"],
        ["self.call = partial(checkpoint, use_reentrant=False, preserve_rng_state=True)"],
    ),
    (
        "precision/clip-before-unscale",
        """
        def step(self, x, y):
            loss = self.loss(self.model(x), y)
            self.scaler.scale(loss).backward()
            self.limit()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        """,
        ["self.scaler.step"], [], [], ["self.scaler.unscale_(self.optimizer)"],
    ),
    (
        "stall/unregistered-modules",
        """
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scales = tuple(Scale(s, nn.Conv1d(4, 4, 5)) for s in (1, 2))
        """,
        ["self.scales"], ["0.scales[0].conv (Conv1d), 0.scales[1].conv (Conv1d): gradient in every window looked at, moved by 0"],
        [], ["self.scales_modules = nn.ModuleList(item.conv for item in self.scales)"],
    ),
    (
        "stall/double-softmax", "loss = self.loss(self.model(x), y)\n", ["loss ="], ["the rows lie between 0 and 1 and sum to 1"],
        ["loss = self.loss(self.model(x), y)"], ["loss = self.loss(self.model(x).clamp(min=1e-8).log(), y)"],
    ),
    (
        "autograd/graph-freed",
        """
        class Baseline:
            def __call__(self, score):
                self.value = score if self.value is None else 0.9 * self.value + 0.1 * score
                return self.value
        """,
        ["self.value = score|uses a result with its history"], [],
        ["self.value = score if self.value is None else 0.9 * self.value + 0.1 * score"],
        ["self.value = score if self.value is None else 0.9 * self.value.detach() + 0.1 * score"],
    ),
    (
        "autograd/graph-freed", "total += loss\n", ["total +=|uses a result with its history"], [],
        ["total += loss"], ["total = total.detach() + loss"],
    ),
    (
        "stall/inputs-and-targets-misaligned", "labels = torch.full_like(ids, -100)\nlabels[:, :-1] = ids[:, 1:]\n", ["labels ="], [],
        ["labels[:, :-1] = ids[:, 1:]"], ["labels[:] = ids"],
    ),
    (
        "stall/params-not-in-optimizer",
        """
        class Adapter(L.Callback):
            def on_train_start(self, trainer, module):
                fresh = nn.Linear(module.width, 7)
                module.head = fresh
        """,
        ["fresh = |made after the optimizer"], [], [], ['trainer.optimizers[0].add_param_group({"params": list(fresh.parameters())})'],
    ),
    (
        "schedule/step-order",
        """
        def go(batches):
            for b in batches:
                lossy(b).backward()
                plan.step()  # each batch
                opt.step()
                log(b)
        """,
        ["plan.step|this must come after optimizer.step()", "opt.step()"], [], ["opt.step()"], ["opt.step()"],
    ),
    (
        "schedule/reset-on-resume",
        """
        class Job:
            def __init__(self, net):
                self.optim = Adam(net.parameters())
                self.plan = StepLR(self.optim, 10)

            def save(self, path):
                torch.save({"net": self.net.state_dict(), "optim": self.optim.state_dict()}, path)

            def load(self, path):
                state = torch.load(path)
                self.optim.load_state_dict(state["optim"])

            def fit(self):
                self.optim.step()
                self.plan.step()
        """,
        ["self.plan = StepLR|its state is not loaded", "self.optim.load_state_dict|the optimizer's state is"], [],
        ['torch.save({"net": self.net.state_dict(), "optim": self.optim.state_dict()}, path)'],
        ['torch.save({"net": self.net.state_dict(), "optim": self.optim.state_dict(), "scheduler": self.plan.state_dict()}, path)',
         'self.plan.load_state_dict(state["scheduler"])'],
    ),
    (
        "hang/openmp-after-fork",
        """
        import multiprocessing as mp

        def main():
            child = mp.Process(target=work)
            child.start()

        if __name__ == "__main__":
            main()
        """,
        ["child.start()|forked here"], [], ["child = mp.Process(target=work)"], ['child = mp.get_context("spawn").Process(target=work)'],
    ),
    (
        "hang/fork-with-live-threads",
        """
        from multiprocessing import get_context

        def main():
            with get_context("fork").Pool(2) as pool:
                pool.map(f, range(4))

        if __name__ == "__main__":
            main()
        """,
        ["pool.map|waits here, for ever"], [], ['with get_context("fork").Pool(2) as pool:'], ['with get_context("spawn").Pool(2) as pool:'],
    ),
    (
        "hang/openmp-thread-limit",
        """
        import os
        os.environ.setdefault("OMP_THREAD_LIMIT", "2")
        import torch
        torch.set_num_threads(8)
        """,
        ["torch.set_num_threads|asks for 8 threads"], ["OMP_THREAD_LIMIT=2, and torch was told to use 8 threads"],
        ['os.environ.setdefault("OMP_THREAD_LIMIT", "2")'], [],
    ),
    (
        "hang/dataloader-worker",
        """
        def main():
            feed = DataLoader(data, batch_size=4, num_workers=2)
            for batch in feed:
                train(batch)

        if __name__ == "__main__":
            main()
        """,
        ["for batch in feed|waits for the next batch"], ["the parent had these threads when it forked: refresher"],
        ["feed = DataLoader(data, batch_size=4, num_workers=2)"],
        ['feed = DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context="spawn")'],
    ),
    (
        "hang/python-lock",
        """
        from threading import Lock

        class Board:
            def __init__(self):
                self.guard = Lock()

            def show(self):
                with self.guard:
                    print(self.text())
        """,
        ["with self.guard|MainThread waits here"], [], ["self.guard = Lock()"], ["from threading import RLock", "self.guard = RLock()"],
    ),
    (
        "hang/gil-held-by-native-code", "import ctypes\nlib = ctypes.PyDLL('libfast.so')\nlib.wait()\n", ["lib.wait()"], [],
        ["lib = ctypes.PyDLL('libfast.so')"], ["lib = ctypes.CDLL('libfast.so')"],
    ),
    (
        "hang/input-blocked", "def ask(url):\n    return urllib.request.urlopen(url).read()\n", ["urlopen|waits here"], [],
        ["return urllib.request.urlopen(url).read()"], ["return urllib.request.urlopen(url, timeout=60).read()"],
    ),
    (
        "ranks/unused-parameters",
        """
        net = nn.parallel.DistributedDataParallel(
            net,
            device_ids=[rank],
        )
        """,
        ["nn.parallel|wrapped here, without find_unused_parameters"], [], [], ["find_unused_parameters=True,"],
    ),
    (
        "ranks/unused-parameters", 'trainer = pl.Trainer(devices=2, strategy="ddp")\ntrainer.fit(module)\n', ["trainer.fit"], [],
        ['trainer = pl.Trainer(devices=2, strategy="ddp")'], ['trainer = pl.Trainer(devices=2, strategy="ddp_find_unused_parameters_true")'],
    ),
    (
        "ranks/same-data-on-every-rank",
        """
        from torch.utils.data import DataLoader

        class Fitter:
            def __init__(self, rows):
                self.rows = rows
                self.feed = DataLoader(self.rows, batch_size=8, shuffle=True)

            def fit(self):
                for epoch in range(3):
                    for batch in self.feed:
                        self.update(batch)
        """,
        ["self.feed = DataLoader|a RandomSampler, the same on every rank"], [],
        ["self.feed = DataLoader(self.rows, batch_size=8, shuffle=True)"],
        ["from torch.utils.data.distributed import DistributedSampler",
         "self.feed = DataLoader(self.rows, batch_size=8, sampler=DistributedSampler(self.rows))", "self.feed.sampler.set_epoch(epoch)"],
    ),
    (
        "ranks/uneven-batches",
        """
        def epoch(ddp, feed, opt):
            for x, y in feed:
                crit(ddp(x), y).backward()
                opt.step()

        ddp = DDP(build())
        feed = DataLoader(mine, batch_size=4)
        epoch(ddp, feed, opt)
        """,
        ["feed = DataLoader|this loader has another length on each rank"], [],
        ["for x, y in feed:", "crit(ddp(x), y).backward()", "opt.step()"],
        ["with ddp.join():", "for x, y in feed:", "crit(ddp(x), y).backward()", "opt.step()"],
    ),
    (
        "ranks/collective-missing",
        """
        def finish(self):
            if self.rank == 0:
                self.save()
                dist.barrier()
            self.close()
        """,
        ["dist.barrier()|rank 0 waits here"], [], ["dist.barrier()"], ["dist.barrier()"],
    ),
    (
        "ranks/collective-mismatch",
        """
        def share(grad):
            if grad.any():
                torch.distributed.all_reduce(grad)
                grad /= 2
            return grad
        """,
        ["all_reduce|not called equally often on all ranks"], [],
        ["if grad.any():", "torch.distributed.all_reduce(grad)", "grad /= 2"], ["torch.distributed.all_reduce(grad)", "grad /= 2"],
    ),
    (
        "ranks/diverged-weights",
        """
        def resume(model, local_rank):
            if local_rank == 0:
                model.load_state_dict(torch.load("last.pt"))
            return model
        """,
        ["model.load_state_dict|loads weights, on one rank only"], [],
        ["if local_rank == 0:", 'model.load_state_dict(torch.load("last.pt"))'], ['model.load_state_dict(torch.load("last.pt"))'],
    ),
    (
        "ranks/straggler", "world = get()\npart = files[rank * n : (rank + 1) * n]\nfeed = DataLoader(part)\n",
        ["feed = DataLoader|slow on rank 1"], [],
        ["part = files[rank * n : (rank + 1) * n]"], ["part = files[rank::world]"],
    ),
    (
        "nan/log-of-zero",
        """
        def unfold(p):
            y = torch.log(p) - torch.log1p(-p)
            width = p.log() + (1 - p).log()
            return y, torch.log1p(-p).sum(1)
        """,
        ["y = torch.log"], [],
        ["y = torch.log(p) - torch.log1p(-p)", "width = p.log() + (1 - p).log()", "return y, torch.log1p(-p).sum(1)"],
        ["y = torch.log(p.clamp(min=1e-8)) - torch.log1p((-p).clamp(min=1e-6 - 1))", "width = p.clamp(min=1e-8).log() + (1 - p).log()",
         "return y, torch.log1p((-p).clamp(min=1e-6 - 1)).sum(1)"],
    ),
    (
        "nan/log-of-zero", "entropy = -(p * p.log()).sum(1).mean()\n", ["p.log()"], [],
        ["entropy = -(p * p.log()).sum(1).mean()"], ["entropy = -(p * p.clamp(min=1e-8).log()).sum(1).mean()"],
    ),
    (
        "nan/log-of-zero",
        """
        from torch.nn import functional

        def cost(z, y):
            return functional.nll_loss(torch.log(torch.softmax(z, dim=1)), y)
        """,
        ["torch.log"], [],
        ["return functional.nll_loss(torch.log(torch.softmax(z, dim=1)), y)"], ["return functional.nll_loss(functional.log_softmax(z, dim=1), y)"],
    ),
    (
        "nan/sqrt-at-zero", "d = ((a - b) ** 2).sum(-1) ** 0.5\n", ["d ="], [],
        ["d = ((a - b) ** 2).sum(-1) ** 0.5"], ["d = ((a - b) ** 2).sum(-1).clamp(min=1e-12) ** 0.5"],
    ),
    (
        "nan/zero-division", "self.mean = self.total / (self.seen * self.weight)\n", ["self.mean"], [],
        ["self.mean = self.total / (self.seen * self.weight)"], ["self.mean = self.total / (self.seen * self.weight + 1e-8)"],
    ),
    (
        "nan/where-trap", "y = torch.where(x > 0, x.log(), x)\n", ["torch.where"], [],
        ["y = torch.where(x > 0, x.log(), x)"], ["y = torch.where(x > 0, torch.where(x > 0, x, torch.ones_like(x)).log(), x)"],
    ),
    (
        "nan/exp-overflow", "z = torch.log(1 + torch.exp(self.raw))\n", ["z ="], [],
        ["z = torch.log(1 + torch.exp(self.raw))"], ["z = torch.nn.functional.softplus(self.raw)"],
    ),
    (
        "nan/half-overflow", 'args = TrainingArguments("out", fp16=True)\nTrainer(model, args).train()\n', ["Trainer(model"], [],
        ['args = TrainingArguments("out", fp16=True)'], ['args = TrainingArguments("out", bf16=True)'],
    ),
    (
        "nan/half-overflow", "def gram(f):\n    return f @ f.mT / f.numel()\n", ["return f @"], [], ["return f @ f.mT / f.numel()"],
        ["with torch.autocast(f.device.type, enabled=False):", "return f.float() @ f.mT.float() / f.numel()"],
    ),
    (
        "nan/softmax-of-empty-row",
        """
        class Attend(nn.Module):
            def forward(self, q, k, hidden):
                w = (q @ k.mT).masked_fill(hidden, -math.inf)
                return w.softmax(-1)
        """,
        ["return w.softmax"], [],
        ["w = (q @ k.mT).masked_fill(hidden, -math.inf)"], ["w = (q @ k.mT).masked_fill(hidden, -1e9)"],
    ),
    (
        "nan/variance-of-one-sample", "adv = (adv - adv.mean()) / (adv.std() + 1e-8)\n", ["adv ="], [],
        ["adv = (adv - adv.mean()) / (adv.std() + 1e-8)"], ["adv = (adv - adv.mean()) / (adv.std(correction=0) + 1e-8)"],
    ),
    (
        "nan/ctc-infinite", "value = F.ctc_loss(lp, text, frames, letters, blank=0)\n", ["F.ctc_loss"], [],
        ["value = F.ctc_loss(lp, text, frames, letters, blank=0)"], ["value = F.ctc_loss(lp, text, frames, letters, blank=0, zero_infinity=True)"],
    ),
    (
        "nan/diverged",
        """
        parser.add_argument("--lr", type=float, default=3.0)
        args = parser.parse_args()
        opt = torch.optim.SGD(net.parameters(), args.lr)
        """,
        ["torch.optim.SGD"], [], ['parser.add_argument("--lr", type=float, default=3.0)'], ['parser.add_argument("--lr", type=float, default=0.3)'],
    ),
    (
        "autograd/modified-in-place", "def forward(self, x):\n    x *= self.scale(x) - 1\n    return x\n", ["x *="], [],
        ["x *= self.scale(x) - 1"], ["x = x * (self.scale(x) - 1)"],
    ),
    (
        "autograd/modified-in-place", "h = self.norm(h)\nF.relu_(h)\n", ["F.relu_|changed here"], [], ["F.relu_(h)"], ["h = F.relu(h)"],
    ),
    (
        "autograd/modified-in-place", "out = gate(x).sigmoid_() * x\n", ["out ="], [],
        ["out = gate(x).sigmoid_() * x"], ["out = gate(x).sigmoid() * x"],
    ),
    (
        "autograd/modified-in-place",
        """
        class Block(nn.Module):
            def __init__(self):
                self.act = nn.ReLU(inplace=True)

            def forward(self, x):
                return x + self.act(x)
        """,
        ["return x + self.act|changed here"], [], ["self.act = nn.ReLU(inplace=True)"], ["self.act = nn.ReLU()"],
    ),
    (
        "autograd/modified-in-place", "def forward(self, w):\n    w.div_(2).round_()\n    return w\n", ["w.div_"], [],
        ["w.div_(2).round_()"], ["w = w.div(2).round()"],
    ),
    (
        "autograd/modified-in-place", "for t in steps:\n    states[t] = cell(states[t - 1])\n", ["states[t] ="], [],
        ["states[t] = cell(states[t - 1])"], ["part = cell(states[t - 1])", "states = states.clone()", "states[t] = part"],
    ),
    (
        "ranks/same-data-on-every-rank", "loader = make(data, sampler=DistributedSampler(data, num_replicas=n, rank=local, shuffle=True))\n",
        ["loader ="], [], ["loader = make(data, sampler=DistributedSampler(data, num_replicas=n, rank=local, shuffle=True))"],
        ["loader = make(data, sampler=DistributedSampler(data, shuffle=True))"],
    ),
    (
        "stall/params-not-in-optimizer",
        """
        class Engine:
            def __init__(self, net, hooks):
                self.net, self.hooks = net, hooks
                self.opt = self.build()

            def build(self):
                return torch.optim.SGD(self.net.parameters(), lr=0.1)

            def run(self, loader):
                for hook in self.hooks:
                    hook.before(self)
                for x, y in loader:
                    loss(self.net(x), y).backward()
                    self.opt.step()

        class NewHead:
            def before(self, engine):
                engine.net.head = nn.Linear(8, 10)
        """,
        ["return torch|it was built from other parameters", "self.opt = self.build|asked for here",
         "engine.net.head|made after the optimizer"], [],
        [], ["self.opt = self.build()"],
    ),
    (
        "schedule/decays-to-zero-early",
        """
        def train(acc, net, opt, loader):
            sched = LambdaLR(opt, lambda step: max(0.0, 1 - step / 100))
            net, opt, loader = acc.prepare(net, opt, loader)
            for batch in loader:
                with acc.accumulate(net):
                    acc.backward(net(batch))
                    opt.step()
                    sched.step()
                    opt.zero_grad()
        """,
        ["sched = LambdaLR|this schedule"], [], [], ["sched = acc.prepare(sched)"],
    ),
    (
        "data/end-never-learnt",
        """
        def collate(rows):
            batch = tokenizer.pad(rows, return_tensors="pt")
            labels = batch["input_ids"].clone()
            labels[labels == tokenizer.pad_token_id] = -100
            batch["labels"] = labels
            return batch | {"attention_mask": batch["attention_mask"]}
        """,
        ["def collate|makes the labels of a batch"], [],
        ["labels[labels == tokenizer.pad_token_id] = -100"], ['labels[batch["attention_mask"] == 0] = -100'],
    ),
    (
        "mode/statistics-as-built",
        """
        class Average:
            def update(self, model):
                with torch.no_grad():
                    for shadow, weight in zip(self.net.parameters(), model.parameters()):
                        shadow.data.mul_(self.decay).add_(weight.data, alpha=1 - self.decay)
            def __call__(self, x):
                return self.net(x)
        """,
        ["return self.net(x)|the copy is called here"], [], [],
        ["for own, other in zip(self.net.buffers(), model.buffers()):", "own.copy_(other)"],
    ),
    (
        "ranks/diverged-weights",
        """
        def tune(net, rank):
            model = DDP(net, device_ids=[rank])
            pretrain(model)
            model.module.classifier = nn.Linear(64, 10).to(rank)
            return fit(model)
        """,
        ["model.module.classifier|made here"], [], [], ["model = DDP(model.module, device_ids=[rank])"],
    ),
    (
        "ranks/collective-missing",
        """
        import torch.distributed as dist
        for epoch in range(cfg.epochs):
            for batch in loader:
                loss = step(batch)
                if loss.isnan():
                    continue
                loss.backward()
            if epoch % 2:
                for name in names:
                    print(name)
            score = validate(net)
            if stopper(score):
                print("enough")
                break
        dist.barrier()
        """,
        ["dist.barrier()|rank 1 waits here", "loss.backward()|rank 0 is here instead"], [],
        ["if stopper(score):"], ["leaving = [bool(stopper(score))]", "dist.broadcast_object_list(leaving, src=0)", "if leaving[0]:"],
    ),
    (
        "schedule/ends-before-the-run",
        """
        def schedule(optimizer, data, cfg):
            per_epoch = len(data) // cfg.batch
            return OneCycleLR(optimizer, cfg.lr, epochs=cfg.epochs, steps_per_epoch=per_epoch)
        """,
        ["return OneCycleLR|made for 300 steps"], [], ["per_epoch = len(data) // cfg.batch"], ["per_epoch = -(-len(data) // cfg.batch)"],
    ),
    (
        "stall/params-not-in-optimizer", "net.load_state_dict(torch.load(path), strict=True, assign=True)\n",
        ["net.load_state_dict|assign=True puts new parameters into the model"], [],
        ["net.load_state_dict(torch.load(path), strict=True, assign=True)"], ["net.load_state_dict(torch.load(path), strict=True)"],
    ),
    (
        "stall/batch-taken-for-steps", "self.read = nn.LSTM(d, h, num_layers=2)\ny = self.read(x)\n", ["y = self.read|given (32, 6, 8)"], [],
        ["self.read = nn.LSTM(d, h, num_layers=2)"], ["self.read = nn.LSTM(d, h, num_layers=2, batch_first=True)"],
    ),
    (
        "mode/train-during-validation",
        """
        class Net(nn.Module):
            def forward(self, x):
                x = F.dropout(self.a(x), p=0.2)
                x = self.dropout(x)
                return F.dropout2d(self.b(x), 0.1)
        """,
        ["x = F.dropout|drops in eval mode, too"], [],
        ["x = F.dropout(self.a(x), p=0.2)", "return F.dropout2d(self.b(x), 0.1)"],
        ["x = F.dropout(self.a(x), p=0.2, training=self.training)", "return F.dropout2d(self.b(x), 0.1, training=self.training)"],
    ),
    (
        "stall/steps-withheld",
        """
        for i, batch in enumerate(loader):
            with self.acc.accumulate(model):
                self.acc.backward(model(**batch).loss)
                if (i + 1) % cfg.every == 0:
                    self.acc.clip_grad_norm_(model.parameters(), 1.0)
                    opt.step()
                    opt.zero_grad()
        """,
        ["opt.step()|asked for here"], [],
        ["if (i + 1) % cfg.every == 0:", "self.acc.clip_grad_norm_(model.parameters(), 1.0)", "opt.step()", "opt.zero_grad()"],
        ["self.acc.clip_grad_norm_(model.parameters(), 1.0)", "opt.step()", "opt.zero_grad()"],
    ),
    (
        "autograd/modified-in-place",
        """
        def step(self, x):
            loss = self.net(x).mean()
            with torch.no_grad():
                self.net.bias.clamp_(max=1)
            loss.backward()
            self.opt.step()
        """,
        ["clamp_|changed here"], [],
        ["loss.backward()", "self.opt.step()"], ["loss.backward()", "self.opt.step()"],
    ),
    (
        "autograd/silently-modified",
        """
        def step(self, x):
            loss = self.net(x).mean()
            for w in self.net.parameters():
                w.data.mul_(0.999)
            loss.backward()
            self.opt.step()
        """,
        ["w.data.mul_"], [],
        ["loss.backward()", "self.opt.step()"], ["loss.backward()", "self.opt.step()"],
    ),
    (
        "autograd/leaf-modified", "self.bank[index] += rate * delta\n", ["self.bank"], [],
        ["self.bank[index] += rate * delta"], ["with torch.no_grad():", "self.bank[index] += rate * delta"],
    ),
    (
        "autograd/graph-freed",
        """
        def fit(self, chunks):
            memory = torch.zeros(1, 8)
            for chunk in chunks:
                guess, memory = self.cell(chunk, memory)
                self.crit(guess, chunk).backward()
        """,
        ["self.crit(guess"], [], [], ["memory = memory.detach()"],
    ),
    (
        "autograd/graph-freed",
        """
        def fit(net, data, opt):
            decay = sum(w.norm() for w in net.parameters())
            for epoch in range(3):
                for x in data:
                    (net(x).mean() + decay).backward()
                    opt.step()
        """,
        ["decay = sum"], [], ["decay = sum(w.norm() for w in net.parameters())"], ["decay = sum(w.norm() for w in net.parameters())"],
    ),
    (
        "autograd/modified-in-place", "self.queue[i : i + n] = keys\n", ["self.queue"], [], ["self.queue[i : i + n] = keys"],
        ["part = keys", "self.queue = self.queue.clone()", "self.queue[i : i + n] = part"],
    ),
    (
        "autograd/step-between-backwards",
        """
        def update(self, x):
            first = (self.critic(x) - self.target(x)).pow(2).mean()
            second = -self.critic(self.actor(x)).mean()
            first.backward(retain_graph=True)
            one.step()
            second.backward()
            two.step()
        """,
        ["one.step()"], [], ["second = -self.critic(self.actor(x)).mean()"], ["second = -self.critic(self.actor(x)).mean()"],
    ),
    (
        "mode/train-during-validation", "def check(net, x):\n    net.eval\n    return net(x)\n", ["net.eval", "return net"], [],
        ["net.eval"], ["net.eval()"],
    ),
    (
        "autograd/custom-function-not-static",
        """
        class Round(torch.autograd.Function):
            def forward(ctx, x):
                return x.round()

            def backward(ctx, g):
                return g

        y = Round()(x)
        """,
        ["y = Round"], [], ["y = Round()(x)"], ["@staticmethod", "@staticmethod", "y = Round.apply(x)"],
    ),
    (
        "checkpoint/random-inside", "keep = np.random.rand() > self.drop\n", ["keep ="], [],
        ["keep = np.random.rand() > self.drop"], ["keep = torch.rand(()).item() > self.drop"],
    ),
    (
        "precision/clip-before-unscale",
        """
        class Loop:
            def update(self, loss):
                self.grad_scaler.scale(loss).backward()
                nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
                self.grad_scaler.step(self.opt)
                self.grad_scaler.update()
        """,
        ["nn.utils.clip_grad_norm_"], [], [], ["self.grad_scaler.unscale_(self.opt)"],
    ),
    (
        "precision/no-grad-scaler",
        """
        def fit(net, data):
            adam = torch.optim.Adam(net.parameters())
            for x in data:
                with torch.autocast("cpu", dtype=torch.float16):
                    cost = net(x)
                adam.zero_grad()
                cost.backward()
                adam.step()
        """,
        ["cost.backward()"], [], ["cost.backward()", "adam.step()"],
        ['scaler = torch.amp.GradScaler("cpu")', "scaler.scale(cost).backward()", "scaler.step(adam)", "scaler.update()"],
    ),
    (
        "precision/gradient-underflow",
        'accelerator = Accelerator(mixed_precision="fp16")\nmodel = accelerator.prepare(model)\n', ["accelerator.prepare"], [],
        ['accelerator = Accelerator(mixed_precision="fp16")'], ['accelerator = Accelerator(mixed_precision="bf16")'],
    ),
    (
        "precision/scale-collapsed", "kind = torch.float16\nwith autocast('cuda', dtype=kind):\n    f()\n", ["with autocast"], [],
        ["kind = torch.float16"], ["kind = torch.bfloat16"],
    ),
    (
        "precision/step-without-unscale", "scaler.scale(loss).backward()\noptimizer.step()\nscaler.update()\n", ["optimizer.step"], [],
        ["optimizer.step()"], ["scaler.step(optimizer)"],
    ),
    (
        "precision/loss-not-scaled",
        "self.scaler.scale(d_loss).backward()\nself.scaler.step(opt_d)\ng_loss.backward()\nself.scaler.step(opt_g)\n", ["g_loss.backward"], [],
        ["g_loss.backward()"], ["self.scaler.scale(g_loss).backward()"],
    ),
    (
        "precision/optimizer-epsilon", "self.opt = torch.optim.AdamW(self.net.half().parameters(), lr=1e-3)\n", ["AdamW"], [],
        ["self.opt = torch.optim.AdamW(self.net.half().parameters(), lr=1e-3)"],
        ["self.opt = torch.optim.AdamW(self.net.half().parameters(), lr=1e-3, eps=1e-4)"],
    ),
    (
        "precision/norm-weights-frozen", "net = Net().to(device).bfloat16()\nfit(net)\n", ["fit(net)"], [],
        ["net = Net().to(device).bfloat16()"], ["net = Net().to(device)"],
    ),
    (
        "precision/loss-computed-in-half", "cost = self.crit(out.logits, gold)\n", ["self.crit"], [],
        ["cost = self.crit(out.logits, gold)"], ["cost = self.crit(out.logits.float(), gold)"],
    ),
    (
        "precision/autocast-around-backward",
        """
        with torch.autocast("cuda"):
            loss = net(x)
            loss.backward()
        opt.step()
        """,
        ["loss.backward()"], [], ["loss.backward()"], ["loss.backward()"],
    ),
    (
        "logging/nan-hidden", 'TrainingArguments("out", max_steps=9)\n', ["TrainingArguments"], [],
        ['TrainingArguments("out", max_steps=9)'], ['TrainingArguments("out", max_steps=9, logging_nan_inf_filter=False)'],
    ),
    (
        "hang/dataloader-worker",
        """
        class Scans(Dataset):
            def __getitem__(self, i):
                y, x = self.window()
                while self.masks[i][y:, x:].mean() < self.least:
                    y, x = self.window()
                return self.images[i][y:, x:]
        """,
        ["while self.masks|worker 12 goes round and round here"], ["process 12, MainThread: runs in circles: a ← b"],
        ["while self.masks[i][y:, x:].mean() < self.least:"],
        ["for _ in range(1000):", "if not (self.masks[i][y:, x:].mean() < self.least):", "break"],
    ),
    (
        "stall/no-gradient", "def forward(self, x):\n    return torch.round(x)\n", ["torch.round|the slope of `round` is zero"], [],
        ["return torch.round(x)"], ["return (x + (torch.round(x) - x).detach())"],
    ),
    (
        "stall/params-not-in-optimizer",
        """
        def parted(net, decay):
            return [{"params": [p for q in net.modules() if isinstance(q, nn.Linear) for p in q.parameters()], "weight_decay": decay}]

        def build(model, decay):
            return torch.optim.AdamW(parted(model, decay))
        """,
        ["return torch.optim.AdamW|it was built from other parameters"], [], ["return torch.optim.AdamW(parted(model, decay))"],
        [
            "optimizer = torch.optim.AdamW(parted(model, decay))",
            'held = {id(p) for group in optimizer.param_groups for p in group["params"]}',
            'optimizer.add_param_group({"params": [p for p in model.parameters() if p.requires_grad and id(p) not in held]})',
            "return optimizer",
        ],
    ),
    (
        "stall/inputs-and-targets-misaligned",
        """
        def collate(rows):
            said = torch.tensor([r["label"] for r in rows])
            lengths = torch.tensor([len(r["words"]) for r in rows])
            lengths, order = lengths.sort(descending=True)
            words = pad_sequence([rows[i]["words"] for i in order.tolist()])
            return {"words": words, "lengths": lengths, "label": said}
        """,
        ["return {"], [], ['return {"words": words, "lengths": lengths, "label": said}'],
        ['return {"words": words, "lengths": lengths, "label": said[order]}'],
    ),
    (
        "schedule/decays-to-zero-early",
        """
        def plan(optimizer, rows, cfg):
            updates = rows // cfg["batch"]
            return get_linear_schedule_with_warmup(optimizer, int(0.1 * updates), updates)

        args = TrainingArguments("out", num_train_epochs=cfg["epochs"])
        """,
        ["return get_linear|this schedule ends too early"], [], ['updates = rows // cfg["batch"]'],
        ['updates = cfg["epochs"] * (rows // cfg["batch"])'],
    ),
    (
        "schedule/decays-to-zero-early",
        """
        plan = CosineAnnealingLR(opt, T_max=len(loader))
        for epoch in range(9):
            for x in loader:
                fit(x)
                plan.step()
        """,
        ["CosineAnnealingLR|this schedule ends too early"], [], ["plan = CosineAnnealingLR(opt, T_max=len(loader))"],
        ["plan = CosineAnnealingLR(opt, T_max=9 * len(loader))"],
    ),
    (
        "data/not-shuffled",
        """
        import torch

        class Buckets(Sampler):
            def __iter__(self):
                order = sorted(range(len(self.lengths)), key=self.lengths.__getitem__)
                for start in range(0, len(order), self.size):
                    yield order[start:start + self.size]
        """,
        ["def __iter__|gives the order"], [], ["for start in range(0, len(order), self.size):"],
        ["import random", "for start in random.sample(range(0, len(order), self.size), len(range(0, len(order), self.size))):"],
    ),
    (
        "schedule/warmup-never-ends",
        """
        def settings(a, rows):
            total = rows * a.epochs
            return TrainingArguments("out", per_device_train_batch_size=a.batch, warmup_steps=int(0.1 * total))

        def main(a):
            train = Tickets(1600)
            trainer = Trainer(Net(), settings(a, len(train)), train_dataset=train)
            trainer.train()
        """,
        ["trainer.train()|this schedule"], [], ["trainer = Trainer(Net(), settings(a, len(train)), train_dataset=train)"],
        ["trainer = Trainer(Net(), settings(a, -(-len(train) // a.batch)), train_dataset=train)"],
    ),
    (
        "stall/optimizer-never-steps",
        """
        class Churn(L.LightningModule):
            def training_step(self, batch, batch_idx):
                self.manual_backward(self.cost(batch) / self.every)
                if (batch_idx + 1) % self.every == 0:
                    self.optimizers().step()
        """,
        ["if (batch_idx + 1)|the step stands under this condition"], [], ["if (batch_idx + 1) % self.every == 0:"],
        ["if (batch_idx + 1) % self.every == 0 or self.trainer.is_last_batch:"],
    ),
    (
        "stall/inputs-and-targets-misaligned",
        """
        def collate(batch):
            heard = sorted((t for t, _ in batch), key=len, reverse=True)
            said = torch.tensor([c for _, c in batch])
            return pad_sequence(heard), said
        """,
        ["return pad_sequence"], [], ["heard = sorted((t for t, _ in batch), key=len, reverse=True)"],
        ["batch = sorted(batch, key=lambda sample: len(sample[0]), reverse=True)", "heard = [t for t, _ in batch]"],
    ),
    (
        "stall/metric-does-not-follow-loss", "best = torch.max(scores, -1)[1]\nboard.add('acc', (best == y).float().mean())\n", ["board.add"],
        ["the scores at the loss have the shape (8, 5, 20), with the classes at axis 1"],
        ["best = torch.max(scores, -1)[1]"], ["best = torch.max(scores, 1)[1]"],
    ),
    (
        "stall/metric-does-not-follow-loss",
        "def hits(p, y):\n    return (p.argmax(dim=1, keepdim=True) == y).float().mean()\n\nboard.add('acc', hits(net(x), y))\n", ["board.add"],
        ["the scores at the loss have the shape (8, 5), with the classes at axis 1"],
        ["return (p.argmax(dim=1, keepdim=True) == y).float().mean()"], ["return (p.argmax(dim=1) == y).float().mean()"],
    ),
    (
        "stall/metric-does-not-follow-loss",
        """
        import functools

        class Judge:
            @functools.lru_cache
            def answers(self):
                return torch.cat([self.net(x).argmax(1) for x, _ in self.held_out])
        board.add("acc", judge.score())
        """,
        ["board.add"], [], ["@functools.lru_cache"], [],
    ),
    (
        "logging/step-not-increasing",
        """
        def epoch(self, number, lr):
            for at, (x, y) in enumerate(tqdm(self.loader)):
                self.board.add_scalar("loss", self.step(x, y, lr), global_step=at)

        for e in range(9):
            run.epoch(e, 0.1)
        """,
        ["self.board.add_scalar|logs with a step that starts again"], [],
        ['self.board.add_scalar("loss", self.step(x, y, lr), global_step=at)'],
        ['self.board.add_scalar("loss", self.step(x, y, lr), global_step=number * len(self.loader) + at)'],
    ),
    (
        "logging/step-not-increasing",
        """
        import torch

        def learn(batches, board):
            step = 0
            for x in batches:
                board.add_scalar("train/loss", fit(x), step)
                step += 1
        """,
        ["board.add_scalar|logs with a step that starts again"], [],
        ['board.add_scalar("train/loss", fit(x), step)'],
        ["import itertools", "points_of_train_loss = itertools.count()", 'board.add_scalar("train/loss", fit(x), next(points_of_train_loss))'],
    ),
    (
        "logging/points-dropped", "wandb.log({'speed': speed}, step=batch)\n", ["wandb.log|logs with a step that W&B has passed"], [],
        ["wandb.log({'speed': speed}, step=batch)"], ["wandb.log({'speed': speed})"],
    ),
    (
        "logging/two-writers",
        """
        import os
        class Judge:
            def __init__(self, folder):
                self.board = SummaryWriter(log_dir=folder)
        """,
        ["SummaryWriter|made on a folder that another writer uses"], [], ["self.board = SummaryWriter(log_dir=folder)"],
        ['self.board = SummaryWriter(log_dir=os.path.join(folder, "judge"))'],
    ),
    (
        "logging/two-writers", "import os\nboard = SummaryWriter(cfg.out)\n", ["SummaryWriter|made in every process"], [],
        ["board = SummaryWriter(cfg.out)"], ["board = SummaryWriter(os.path.join(cfg.out, f\"rank{os.environ.get('RANK', os.getpid())}\"))"],
    ),
    (
        "nan/zero-division", "import torch\nloss = (each * 12 / length).sum() / (12 / length).sum()\n", ["loss ="],
        ["operand: 12 numbers", "operand: whole numbers from 0 to 9, 3 zeros"],
        ["loss = (each * 12 / length).sum() / (12 / length).sum()"],
        ["loss = (each * 12 / length.clamp(min=1)).sum() / (12 / length.clamp(min=1)).sum().clamp(min=1)"],
    ),
    (
        "data/labels-one-hot", "maps = F.one_hot(ids, 5).view(len(ids), 5, 32, 32)\nloss = F.mse_loss(net(x), maps.float())\n",
        ["one_hot|gives the axes another order", "mse_loss|receives these targets; `permute(0, 3, 1, 2)` would move them"], [],
        ["maps = F.one_hot(ids, 5).view(len(ids), 5, 32, 32)"], ["maps = F.one_hot(ids, 5).permute(0, 3, 1, 2)"],
    ),
    (
        "stall/input-ignored",
        """
        class Sensor(nn.Module):
            def __init__(self, width):
                self.scale = nn.LayerNorm(1)
                self.rest = nn.GRU(1, width)

            def forward(self, x):
                return self.rest(self.scale(x))
        """,
        ["self.rest(self.scale(x))"], ["first module whose output does not depend on the sample: body.scale"],
        ["self.scale = nn.LayerNorm(1)"], ["self.scale = torch.nn.Identity()"],
    ),
    (
        "stall/learning-rate-too-small", "opt = torch.optim.AdamW(net.parameters(), lr=cfg.lr / 1000, weight_decay=0.1)\n", ["AdamW"], [],
        ["opt = torch.optim.AdamW(net.parameters(), lr=cfg.lr / 1000, weight_decay=0.1)"],
        ["opt = torch.optim.AdamW(net.parameters(), lr=100 * (cfg.lr / 1000), weight_decay=0.1)"],
    ),
    (
        "stall/no-gradient",
        """
        def pool(self, parts):
            sums = [part.sum(0).tolist() for part in parts]
            return torch.tensor(sums, device=self.device)
        """,
        [".tolist()|`.tolist()` leaves the graph here"], [],
        ["sums = [part.sum(0).tolist() for part in parts]", "return torch.tensor(sums, device=self.device)"],
        ["sums = [part.sum(0) for part in parts]", "return torch.stack(sums)"],
    ),
    (
        "stall/probabilities-not-logs", "self.last = nn.Softmax(dim=-1)\n", ["nn.Softmax|this softmax"], [],
        ["self.last = nn.Softmax(dim=-1)"], ["self.last = nn.LogSoftmax(dim=-1)"],
    ),
    (
        "stall/inputs-and-targets-misaligned",
        """
        def pad(rows):
            words = [w for w, _ in rows]
            heard = sorted([s for _, s in rows], key=len)
            return pad_sequence(heard), words
        """,
        ["return pad_sequence"], [], ["heard = sorted([s for _, s in rows], key=len)"],
        ["rows = sorted(rows, key=lambda sample: len(sample[1]))", "heard = [s for _, s in rows]"],
    ),
    (
        "stall/inputs-and-targets-misaligned", 'batch = {"input_ids": t[:, :-1].contiguous(), "labels": t[:, 1:].contiguous()}\n',
        ["batch = {"], [], ['batch = {"input_ids": t[:, :-1].contiguous(), "labels": t[:, 1:].contiguous()}'],
        ['batch = {"input_ids": t[:, :-1].contiguous(), "labels": t[:, :-1].contiguous()}'],
    ),
    (
        "schedule/rate-times-itself",
        """
        def configure(self):
            opt = torch.optim.Adam(self.parameters(), lr=self.rate)
            plan = torch.optim.lr_scheduler.LambdaLR(opt, lr_lambda=self.rate_at)
            return [opt], [plan]
        """,
        ["LambdaLR|this schedule wants a factor"], [], ["plan = torch.optim.lr_scheduler.LambdaLR(opt, lr_lambda=self.rate_at)"],
        ['plan = torch.optim.lr_scheduler.LambdaLR(opt, lr_lambda=lambda step, rate=self.rate_at: rate(step) / opt.defaults["lr"])'],
    ),
    (
        "stall/wrong-softmax-axis",
        """
        class Tags(nn.Module):
            def __init__(self, axis=1):
                self.as_log = nn.LogSoftmax(axis)

            def forward(self, h):
                return self.as_log(h)
        """,
        ["return self.as_log(h)|this softmax; the classes are axis 2"], [],
        ["self.as_log = nn.LogSoftmax(axis)"], ["self.as_log = nn.LogSoftmax(2)"],
    ),
    (
        "stall/params-not-in-optimizer",
        """
        class Resize(Callback):
            def on_fit_start(self, trainer, module):
                if module.head.out_features != self.classes:
                    module.head = nn.Linear(64, self.classes)
        """,
        ["module.head = nn.Linear|made after the optimizer"], [],
        [], ['trainer.optimizers[0].add_param_group({"params": list(module.head.parameters())})'],
    ),
    (
        "stall/vanishing-gradient",
        """
        def draw(layer):
            if isinstance(layer, nn.Linear):
                layer.weight.data.normal_(0, 0.01)
                layer.bias.data.zero_()
        """,
        ["layer.weight.data"], [], ["layer.weight.data.normal_(0, 0.01)"], ["torch.nn.init.kaiming_normal_(layer.weight)"],
    ),
    (
        "stall/dead-units",
        """
        def prior(p):
            return -math.log((1 - p) / p)

        for part in head.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.constant_(part.bias, prior(0.01))
                nn.init.zeros_(part.weight)
        """,
        ["nn.init.constant_"], [], ["nn.init.constant_(part.bias, prior(0.01))"], [],
    ),
    (
        "mode/train-during-validation",
        """
        class Net(nn.Module):
            def train(self, mode=True):
                super().train()
                self.stem.eval()
                return self
        """,
        ["super().train()"], [], ["super().train()"], ["super().train(mode)"],
    ),
    (
        "data/not-shuffled", "rows = DataLoader(Stream(files), batch_size=64)\n",
        ["DataLoader|gives the samples in the order in which the data set is iterated"], [],
        ["rows = DataLoader(Stream(files), batch_size=64)"], ["rows = DataLoader(list(Stream(files)), batch_size=64, shuffle=True)"],
    ),
    (
        "data/workers-share-random-state",
        """
        import numpy as np

        class Walks(IterableDataset):
            def __init__(self, graph):
                self.chance = np.random.RandomState(3)

            def __iter__(self):
                yield from self.walk(self.chance)
        """,
        ["def __iter__|each worker makes the same samples here"], [], [],
        ["from torch.utils.data import get_worker_info", "worker = get_worker_info()", "if worker is not None:",
         "self.chance = np.random.RandomState(worker.seed % 2**32)"],
    ),
    (
        "schedule/step-order",
        """
        for epoch in range(epochs):
            plan.step()
            seen = train_one_epoch(net, loader)
            print(seen)
        """,
        ["plan.step()|must come after"], [], ["seen = train_one_epoch(net, loader)"], ["seen = train_one_epoch(net, loader)"],
    ),
    (
        "hang/queue-nobody-feeds",
        """
        class Feed:
            def fill(self):
                for row in self.rows:
                    self.q.put(make(row))

            def batches(self):
                for _ in range(self.count):
                    yield self.q.get()
        """,
        ["yield self.q.get()|waits for an item"], [], ["yield self.q.get()"],
        ["self.q.put(None)", "item = self.q.get()", "if item is None:", "break", "yield item"],
    ),
    (
        "hang/python-lock",
        """
        class Shared:
            def __init__(self):
                self.read = threading.Lock()
                self.write = threading.Lock()

            def one(self):
                with self.read:
                    with self.write:
                        pass

            def other(self):
                with self.write, self.read:
                    pass
        """,
        ["with self.write:", "with self.write, self.read"], [],
        ["self.read = threading.Lock()", "self.write = threading.Lock()"], ["self.read = threading.RLock()", "self.write = self.read"],
    ),
    (
        "ranks/collective-missing",
        """
        def keep(rank, loss):
            if loss < best:
                total(loss)

        def total(loss):
            dist.all_reduce(loss)

        def report(rank, loss):
            if rank == 0:
                keep(rank, loss)
                print(loss)
        """,
        ["dist.all_reduce(loss)"], [], ["keep(rank, loss)"], ["keep(rank, loss)"],
    ),
    (
        "ranks/same-data-on-every-rank", 'rank = int(os.environ["GROUP_RANK"])\npart = rows[rank::world]\n', ["part = rows"], [],
        ['rank = int(os.environ["GROUP_RANK"])'], ['rank = int(os.environ["RANK"])'],
    ),
    (
        "precision/optimizer-epsilon", "opt = torch.optim.AdamW(net.parameters(), **SETTINGS)\n", ["AdamW"], [],
        ["opt = torch.optim.AdamW(net.parameters(), **SETTINGS)"], ['opt = torch.optim.AdamW(net.parameters(), **{**SETTINGS, "eps": 1e-4})'],
    ),
    (
        "autograd/silently-modified",
        """
        def score(self, out, y):
            best = out.detach()
            best[best > 0] = 1
            return (best == y).sum()
        """,
        ["best[best > 0] = 1"], [], ["best = out.detach()"], ["best = out.detach().clone()"],
    ),
    (
        "schedule/reset-on-resume",
        """
        class Run:
            def __init__(self, path):
                self.opt = SGD(self.net.parameters(), lr=0.1)
                if path.exists():
                    self.resume(path)
                self.plan = CosineAnnealingLR(self.opt, 90)

            def resume(self, path):
                state = torch.load(path)
                self.opt.load_state_dict(state["opt"])

            def keep(self, path):
                self.plan.step()
                torch.save({"opt": self.opt.state_dict()}, path)
        """,
        ["self.plan =|its state is not loaded", "self.opt.load_state_dict|the optimizer's state is"], [],
        ["self.plan = CosineAnnealingLR(self.opt, 90)", 'torch.save({"opt": self.opt.state_dict()}, path)'],
        ["self.plan = CosineAnnealingLR(self.opt, 90)", 'self.plan.load_state_dict(state["scheduler"])',
         'torch.save({"opt": self.opt.state_dict(), "scheduler": self.plan.state_dict()}, path)'],
    ),
    (
        "nan/bad-sample",
        """
        import torch

        class Rows(Dataset):
            def __getitem__(self, i):
                return {"wind": self.wind[i], "power": self.power[i]}
        """,
        ["def __getitem__|the sample is read here"], ["bad samples in that batch: 7; field wind of what Rows gives"],
        ['return {"wind": self.wind[i], "power": self.power[i]}'],
        ['return {"wind": torch.nan_to_num(torch.as_tensor(self.wind[i])), "power": self.power[i]}'],
    ),
    (
        "autograd/custom-function-not-static",
        """
        class Blend(Function):
            def __init__(self, weight, floor=0.0):
                self.weight, self.floor = weight, floor

            def forward(self, a, b):
                return self.weight * a + b + self.floor

            def backward(self, g):
                return self.weight * g, g

        class Mix(nn.Module):
            def __init__(self):
                super().__init__()
                self.blend = Blend(weight=2.0)

            def forward(self, a, b):
                return self.blend(a, Blend(0.5, 1.0)(a, b))
        """,
        ["return self.blend"], [],
        ["def __init__(self, weight, floor=0.0):", "", "def forward(self, a, b):", "return self.weight * g, g",
         "self.blend = Blend(weight=2.0)", "return self.blend(a, Blend(0.5, 1.0)(a, b))"],
        ["@staticmethod", "def forward(self, a, b, weight, floor=0.0):", "@staticmethod",
         "return self.weight * g, g, None, None", "self.blend = (lambda *inputs: Blend.apply(*inputs, 2.0, 0.0))",
         "return self.blend(a, Blend.apply(a, b, 0.5, 1.0))"],
    ),
    (
        "autograd/graph-freed",
        """
        import torch

        class Tree(nn.Module):
            def table(self, key):
                if key not in self.tables:
                    self.tables[key] = self.embed(self.positions[key])
                return self.tables[key]
        """,
        ["return self.tables[key]|uses a result with its history", "self.tables[key] = self.embed|made here"], [],
        ["if key not in self.tables:"], ["if key not in self.tables or torch.is_grad_enabled():"],
    ),
    (
        "autograd/graph-freed",
        """
        class Tree(nn.Module):
            @cached_property
            def basis(self):
                return self.rotate(self.eye)
        """,
        ["return self.rotate|made here"], [], ["@cached_property"], ["@property"],
    ),
    (
        "hang/fork-with-live-threads",
        """
        import queue
        import threading

        class Log:
            def __init__(self):
                self.gate = threading.RLock()
                self.rows = queue.Queue(100)

            def add(self, row):
                with self.gate:
                    self.rows.put(row)
        """,
        ["self.rows.put(row)|waits here, for ever"], [], [],
        [
            "import os",
            "os.register_at_fork(before=self.gate.acquire, after_in_parent=self.gate.release, after_in_child=self.gate.release)",
            "os.register_at_fork(before=self.rows.mutex.acquire, after_in_parent=self.rows.mutex.release, after_in_child=self.rows.mutex.release)",
        ],
    ),
    (
        "hang/queue-nobody-feeds",
        """
        class Ring:
            def fill(self):
                while self.running:
                    buffer = self.empty.get()
                    self.full.put(self.read(buffer))

            def give_back(self, buffer):
                self.empty.put_nowait(buffer)

        def train(ring, model):
            while True:
                buffer = ring.full.get()
                if buffer.bad:
                    continue
                step(model, buffer)
                ring.give_back(buffer)
        """,
        ["buffer = ring.full.get()|waits for an entry", "buffer = self.empty.get()|Thread-1 (fill) waits for an entry, too"], [],
        [], ["ring.give_back(buffer)"],
    ),
    (
        "hang/pipe-nobody-reads",
        """
        def frames(path):
            process = Popen(["ffmpeg", "-i", path, "-"], stdout=PIPE, stderr=PIPE)
            process.wait(timeout=60)
            return decode(process.stdout.read(), process.stderr.read())
        """,
        ["process.wait(|waits here for the process"], [],
        ["process.wait(timeout=60)", "return decode(process.stdout.read(), process.stderr.read())"],
        ["out, err = process.communicate(timeout=60)", "return decode(out, err)"],
    ),
    (
        "stall/sample-without-gradient",
        "class Agent:\n    def code(self, q):\n        return self.decode(q.sample((4,)))\n",
        ["return self.decode|sample() cuts the graph here; rsample() would not"], [],
        ["return self.decode(q.sample((4,)))"], ["return self.decode(q.rsample((4,)))"],
    ),
    (
        "checkpoint/weights-not-loaded",
        "state = torch.load(path)\nnet.load_state_dict(state['ema'] if ema else state, strict=False)\n",
        ["net.load_state_dict|loads nothing: put 'module.' before them"], [],
        ["net.load_state_dict(state['ema'] if ema else state, strict=False)"],
        ['net.load_state_dict({"module." + name: tensor for name, tensor in (state[\'ema\'] if ema else state).items()}, strict=False)'],
    ),
    (
        "nan/softmax-of-empty-row",
        "def forward(self, x, padded):\n    return self.encoder(x, src_key_padding_mask=padded)\n",
        ["return self.encoder"], [],
        ["return self.encoder(x, src_key_padding_mask=padded)"],
        ["return self.encoder(x, src_key_padding_mask=padded & ~padded.all(-1, keepdim=True))"],
    ),
    (
        "nan/diverged",
        """
        def step(self, batch):
            loss = self.loss(batch)
            self.optimizer.zero_grad()
            clip_grad_norm_(self.net.parameters(), 1.0)
            loss.backward()
            self.optimizer.step()
        """,
        ["loss.backward()|overflowed here in the end"], [],
        ["loss.backward()"], ["loss.backward()"],
    ),
    (
        "nan/diverged",
        "opt = SGD(net.parameters(), lr=args.lr)\n", ["opt = SGD|the optimizer and its learning rate"], [],
        ["opt = SGD(net.parameters(), lr=args.lr)"], ["opt = SGD(net.parameters(), lr=args.lr / 10)"],
    ),
    (
        "precision/norm-weights-frozen",
        "import torch\nmodel = build(cfg).to(device, dtype=cfg.dtype)\n", ["model = build|made 16 bit here"], [],
        ["model = build(cfg).to(device, dtype=cfg.dtype)"], ["model = build(cfg).to(device, dtype=torch.float32)"],
    ),
    (
        "precision/no-grad-scaler",
        "scaler = torch.amp.GradScaler(enabled=True)\nwith torch.autocast(device_type='cpu', dtype=torch.float16):\n    loss = net(x)\n",
        ["loss = net(x)"], [], ["scaler = torch.amp.GradScaler(enabled=True)"], ["scaler = torch.amp.GradScaler('cpu', enabled=True)"],
    ),
    (
        "autograd/step-between-backwards",
        """
        def epoch(loader):
            for x, s in loader:
                code = net(x)
                guess = bce(judge(code), s)
                guess.backward(retain_graph=True)
                judge_opt.step()
                loss = rebuild(code, x) - guess
                net_opt.zero_grad()
                loss.backward()
                net_opt.step()
        """,
        ["judge_opt.step()|changes the tensor"], [], [], ["guess = bce(judge(code), s)"],
    ),
    (
        "stall/unregistered-modules",
        """
        from torch import nn

        class Stack(nn.Module):
            def __init__(self, parts):
                super().__init__()
                self.parts = parts
        """,
        ["self.parts = parts|Stack calls them here"], ["parts['a'] (Linear), parts['b'] (Linear): gradient in every window looked at, moved by 0"],
        ["self.parts = parts"], ["self.parts = nn.ModuleDict(parts)"],
    ),
    (
        "data/labels-one-hot",
        "target = F.one_hot(mask, k).reshape(*logits.shape).float()\nloss = bce(logits, target)\n",
        ["target =|gives the axes another order", "loss =|receives these targets; `permute(0, 3, 1, 2)` would move them"], [],
        ["target = F.one_hot(mask, k).reshape(*logits.shape).float()"], ["target = F.one_hot(mask, k).permute(0, 3, 1, 2).float()"],
    ),
    (
        "ranks/collective-missing",
        """
        class Best:
            def offer(self, net, score):
                if score > self.best:
                    self.best = score
                    self.keep(net)

            def keep(self, net):
                save(net)
                dist.barrier()
        """,
        ["dist.barrier()|rank 0 waits here"], [],
        ["if score > self.best:"], ["decision = [bool(score > self.best)]", "dist.broadcast_object_list(decision, src=0)", "if decision[0]:"],
    ),
    (
        "ranks/diverged-weights",
        """
        def main():
            body = DDP(Body(), device_ids=[local])
            head = Margin(64, 100)
            opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
            for x, y in loader:
                loss = head(body(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
            print(head.weight.norm(), head.train())
        """,
        ["loss = head|trained here, outside of the wrapper"], [],
        ["print(head.weight.norm(), head.train())"], ["head = DDP(head, device_ids=[local])", "print(head.module.weight.norm(), head.train())"],
    ),
    (
        "autograd/silently-modified",
        "def step(net, frames, rows):\n    loss = mse(net(frames), rows)\n    source.fill(frames)\n    loss.backward()\n",
        ["loss = mse|needs it unchanged for backward"], [],
        ["loss = mse(net(frames), rows)"], ["loss = mse(net(frames.clone()), rows)"],
    ),
    (
        "stall/no-gradient",
        """
        def collate(parts):
            table = np.full((len(parts), 9, 4), 0.5)
            for row, part in enumerate(parts):
                table[row, : len(part)] = part.detach().cpu().numpy()
            return torch.tensor(table).float()
        """,
        ["table[row, : len(part)] =|`.detach()` leaves the graph here"], [],
        ["table = np.full((len(parts), 9, 4), 0.5)", "table[row, : len(part)] = part.detach().cpu().numpy()", "return torch.tensor(table).float()"],
        ["table = torch.full((len(parts), 9, 4), 0.5)", "table[row, : len(part)] = part", "return table.float()"],
    ),
    (
        "data/labels-out-of-range",
        """
        class Net(nn.Module):
            def __init__(self, width=9, n_classes=9):
                super().__init__()
                self.head = nn.Linear(width, n_classes)

        loss = F.cross_entropy(Net()(x), y)
        """,
        ["loss = F.cross_entropy"], ["labels of the failing batch run from 0 to 9, the output has 9 columns"],
        ["def __init__(self, width=9, n_classes=9):"], ["def __init__(self, width=9, n_classes=10):"],
    ),
    (
        "data/labels-out-of-range",
        "net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 5))\nloss = nn.CrossEntropyLoss()(net(x), y)\n",
        ["loss ="], ["labels of the failing batch run from 0 to 6, the output has 5 columns"],
        ["net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 5))"], ["net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 7))"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "source", "places", "evidence", "taken", "put"), STYLES, ids=[f"{i}-{row[0]}" for i, row in enumerate(STYLES)]
)
def test_the_line_concerned_changes_and_no_other(
    tmp_path: Path, rule: str, source: str, places: list[str], evidence: list[str], taken: list[str], put: list[str]
) -> None:
    program = Program(tmp_path, source)
    assert program.changes(rule, *places, evidence=evidence) == (taken, put)


ADVICE = [
    ("stall/input-ignored", "y = net(mask * x)\n"), ("stall/metric-does-not-follow-loss", "loss = ctc(p, t, n, m)\n"),
    ("stall/uniform-predictions", "loss = ce(logits, y)\n"), ("hang/queue-nobody-feeds", "rows = self.queue.get()\n"),
    ("nan/bad-sample", "for x in loader: pass\n"), ("nan/bad-weights", "net.load_state_dict(torch.load(p))\n"),
    ("autograd/custom-backward-wrong", "return g * x\n"), ("data/not-shuffled", "for i in range(0, n, 8): step(x[i:i + 8])\n"),
    ("schedule/warmup-never-ends", "group['lr'] = base * min(1, step / 1000)\n"), ("stall/learning-rate-zero", "opt = Adam(ps, lr=rate())\n"),
    ("hang/python-lock", "lock.acquire()\n"), ("ranks/collective-missing", "dist.barrier()\n"), ("nan/log-of-zero", "loss = entropy(p)\n"),
    ("autograd/modified-in-place", "update(h)\n"), ("stall/double-softmax", "loss = crit(net(x), y)\n"),
    ("nan/first-operation", "slope = torch.tan(angle)\n"), ("crash/known", "net.load_state_dict(state)\n"),
    ("logging/points-dropped", "run.log({'a': 1}, counters)\n"), ("logging/step-not-increasing", "note('a', 1, step)\n"),
    ("logging/two-writers", "writer = SummaryWriter()\n"),
    ("crash/native-code", "rows = windows[order]\n"),
    ("hang/fork-with-live-threads", "pool.map(f, xs)\n"), ("data/labels-out-of-range", "loss = ce(net(x), y)\n"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "source"), ADVICE)
def test_where_no_rewrite_is_sound_there_is_advice_and_the_lines_to_look_at(tmp_path: Path, rule: str, source: str) -> None:
    if rule == "autograd/custom-backward-wrong":
        source = f"def backward(ctx, g):\n    {source}"
    program = Program(tmp_path, source)
    line = source.splitlines()[-1].strip()
    patch = propose(program.finding(rule, line))
    assert patch is not None
    assert patch.kind == "advice"
    assert patch.lines == (f"{program.path}:{len(source.splitlines())}",)


def test_a_module_that_the_file_of_the_finding_imports_is_patched(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    corpus = Program(tmp_path / "pkg", """
        def block(ids):
            return {"input_ids": ids[:-1], "labels": ids[1:]}
    """, "corpus.py")  # fmt: skip
    train = Program(tmp_path / "pkg", """
        from .corpus import block

        Trainer(train_dataset=[block(ids) for ids in texts]).train()
    """)  # fmt: skip
    patch = propose(train.finding("stall/inputs-and-targets-misaligned", "Trainer(|inputs and targets meet here"))
    assert patch is not None
    assert list(patch.files) == [corpus.path]


def test_a_copy_that_a_class_of_another_file_trains_is_not_made(tmp_path: Path) -> None:
    trainer = Program(tmp_path, """
        class Trainer:
            def __init__(self, model, optimizer):
                self.net = copy.deepcopy(model).to("cpu")
                self.best = copy.deepcopy(model)
                self.optimizer = optimizer

            def loss(self, x, y):
                return F.mse_loss(self.net(x), y)

            def fit(self, loader):
                for x, y in loader:
                    self.loss(x, y).backward()
                    self.optimizer.step()
    """, "trainer.py")  # fmt: skip
    train = Program(tmp_path, """
        from trainer import Trainer

        opt = SGD(model.parameters(), 0.1)
        Trainer(model, opt).fit(loader)
    """)  # fmt: skip
    patch = propose(train.finding("stall/params-not-in-optimizer", "opt = SGD|it was built from other parameters"))
    assert patch is not None
    assert list(patch.files) == [trainer.path]
    assert '+        self.net = model.to("cpu")' in patch.diff()


FUNCTION = """
import torch

class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        {}

    @staticmethod
    def backward(ctx, g):
        return 3 * g, None
"""
LEFT_ALONE = [  # rule, source, line of the finding
    *(
        ("autograd/custom-backward-wrong", FUNCTION.format(body.replace("; ", "\n        ")), "return 3 * g")
        for body in (
            "ctx.k = 3; return x * ctx.k", "return torch.from_numpy(x.numpy())", "return x.exp_()", "x += 1; return x * 2", "return x.data * 2",
            "y = x * 2; y[0] = 1; return y", "return (x > 0).float()", "return x.round() / 2", "return _kernels.forward(x)", "return launch(ctx, x)",
            "y = torch.empty_like(x); kernel[(8,)](x, y); return y", "return x * float(x.mean())", "return x.view_as(x)",
            "return torch.ops.own.f(x)", "return k(x)",
        )
    ),
    ("autograd/custom-backward-wrong", FUNCTION.format("return x.exp()") + "class Other(Own): pass\n", "return 3 * g"),
    ("stall/params-not-in-optimizer", """
        def make(net):
            params = net.parameters()
            if net.big:
                opt = SGD([{"params": params}, {"params": extra}], 0.1)
            else:
                opt = Adam([{"params": params}, {"params": extra}])
        """, "opt = Adam"),
    ("stall/params-not-in-optimizer", """
        class Distiller:
            def __init__(self, net):
                self.net, self.opt = net, opt
                self.student = net
                self.slow = copy.deepcopy(net)

            def step(self, x):
                (self.student(x) - self.slow(x)).square().mean().backward()

        opt = SGD(groups(net), 0.1)
        """, "opt = SGD"),
    ("stall/params-not-in-optimizer", """
        def inner(net, x):
            fast = copy.deepcopy(net)
            inside = SGD(fast.parameters(), 0.1)
            fast(x).backward()
            inside.step()

        opt = SGD(groups(net), 0.1)
        """, "opt = SGD(groups"),
    ("stall/optimizer-never-steps", """
        with acc.accumulate(net):
            if torch.isfinite(loss):
                opt.step()
        """, "if torch"),
    ("hang/queue-nobody-feeds", """
        pool = ThreadPoolExecutor(4)

        def size(folder):
            return sum(job.result() for job in [pool.submit(size, below) for below in folder])

        pool.submit(size, root).result()
        """, "return sum"),
    *(
        ("data/labels-constant", f"y = {code}\nloss = ce(net(x), y)\n", "loss = ce")
        for code in ("(x > 3).long() * K", "(x / K).int() * K", "row.long() * W + column.long()", "int(len(x) / world) * rank", "int(args.k) * 2")
    ),
    ("schedule/warmup-never-ends", """
        def main(ds):
            args = TrainingArguments("out", per_device_train_batch_size=size)
            steps = len(ds) // size * 3
            plan = warm_up(opt, steps)
        """, "plan = warm"),
    ("schedule/warmup-never-ends", """
        def plan(opt, train_ds):
            return warm_up(opt, len(train_ds) * 3)

        def main(size):
            train_loader = DataLoader(train_ds, size)
        """, "return warm"),
    ("stall/inputs-and-targets-misaligned", """
        def best(scores, ids):
            values, places = scores.topk(5, dim=-1)
            return ids[places], torch.stack(others)
        """, "values, places"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "source", "line"), LEFT_ALONE, ids=[f"{i}-{row[0]}" for i, row in enumerate(LEFT_ALONE)])
def test_what_only_looks_like_it_is_left_alone(tmp_path: Path, rule: str, source: str, line: str) -> None:
    patch = propose(Program(tmp_path, source).finding(rule, line))
    assert patch is not None
    assert patch.kind == "advice", patch.diff()


def test_a_variable_from_outside_is_taken_away_there(tmp_path: Path) -> None:
    program = Program(tmp_path, "import torch\nloss.backward()\n")
    evidence = ["OMP_THREAD_LIMIT=2, and torch was told to use 8 threads"]
    (patch,) = candidates(program.finding("hang/openmp-thread-limit", "loss.backward()", evidence=evidence))
    assert (patch.kind, dict(patch.environment)) == ("env", {"OMP_THREAD_LIMIT": None})


def test_an_instruction_that_the_processor_does_not_bear_is_left_out_from_outside(tmp_path: Path) -> None:
    program = Program(tmp_path, "import torch\nout = net(x)\n")
    evidence = ["Illegal instruction: native code ended the process (SIGILL)"]
    patch = candidates(program.finding("crash/native-code", "net(x)", evidence=evidence))[0]
    assert (patch.kind, dict(patch.environment)) == ("env", {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"})


def test_a_target_that_is_missing_is_not_made_up(tmp_path: Path) -> None:
    program = Program(tmp_path, "class Rows(Dataset):\n    def __getitem__(self, i):\n        return self.x[i], self.y[i]\n")
    patch = propose(program.finding("nan/bad-sample", "def __getitem__", evidence=["bad samples in that batch: 7; field 1 of what Rows gives"]))
    assert patch is not None
    assert patch.kind == "advice"


def test_a_rewrite_that_fails_takes_nothing_else_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(desk: object, finding: object) -> str:
        raise TypeError("not iterable")

    program = Program(tmp_path, "loss.backward()\nopt.step\n")
    known = REMEDIES["stall/optimizer-never-steps"]
    monkeypatch.setitem(REMEDIES, "stall/optimizer-never-steps", replace(known, ways=(broken, *known.ways)))
    finding = program.finding("stall/optimizer-never-steps", "opt.step")
    with pytest.raises(TypeError):
        propose(finding)
    monkeypatch.delenv(STRICT)
    patch = propose(finding)
    assert patch is not None
    assert patch.kind == "patch"


def test_the_guard_of_a_script_is_no_branch_of_some_ranks(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        def main():
            dist.barrier()

        if __name__ == "__main__":
            main()
    """)  # fmt: skip
    patch = propose(program.finding("ranks/collective-missing", "dist.barrier()"))
    assert patch is not None
    assert patch.kind == "advice"


def test_every_cause_has_a_remedy_and_every_remedy_is_tested_here() -> None:
    tested = {row[0] for row in STYLES} | {row[0] for row in ADVICE}
    elsewhere = {
        "stall/accumulated-gradients-discarded", "mode/eval-during-training",
        "hang/two-openmp-runtimes", "precision/accuracy-loss",  # the last in test_keep_32.py
    }  # fmt: skip
    assert set(REMEDIES) - elsewhere == tested
    assert {rule.name for rule in all_rules() if rule.kind == "cause" and not rule.of_record} <= set(REMEDIES)


@pytest.mark.parametrize("rule", sorted(REMEDIES))
def test_a_line_of_another_form_is_never_broken(tmp_path: Path, rule: str) -> None:
    """Whatever the line is, what comes out is advice or a program that compiles."""
    odd = Program(tmp_path, """
        def f(*a, **k): return lambda q: (yield q) if a else [*a, {**k}]
        async def g():
            async with f() as h, f(): x: int = (y := 3)
            return not (await h)[1:2, ...] or "%s" % x; del x
        @f
        class C(f(1), metaclass=type): z = 1; w = z if z else f(w=2)(*[3])
        for i, (j, *k) in []: (i)
        else: pass
    """)  # fmt: skip
    for number in range(1, 9):
        for patch in candidates(_about(odd, rule, number)):
            assert patch.kind in ("advice", "env") or patch.files


def _about(program: Program, rule: str, line: int) -> object:
    finding = program.finding(rule, "def f")
    finding.where[0].line = line
    finding.where[0].code = program.path.read_text().splitlines()[line - 1]
    return finding
