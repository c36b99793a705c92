"""How far targets are ahead of the tokens they belong to, in the layouts that programs use."""

from __future__ import annotations

import pytest
import torch

from _trainsleuth_inside.tokens import begins_later, is_tokens, next_tokens, shares_ahead

TEXT = torch.randint(2, 50, (4, 30), generator=torch.Generator().manual_seed(0))


def found(target: torch.Tensor, *looked_up: torch.Tensor) -> list[int]:
    shares = shares_ahead(torch, target, list(looked_up), -100)
    return [int(name.split()[1]) for name, share in shares.items() if float(share) > 0.99]


@pytest.mark.parametrize("ahead", [-1, 0, 1, 2])
def test_the_distance_is_found_in_every_layout(ahead: int) -> None:
    tokens, targets = TEXT[:, 2:22], TEXT[:, 2 + ahead : 22 + ahead]
    assert found(targets, tokens) == [ahead]
    assert found(targets.reshape(-1), tokens) == [ahead]
    assert found(targets.T.reshape(-1), tokens.T) == [ahead]
    assert found(targets[:, :-1].reshape(-1), tokens) == [ahead]


def test_padding_that_is_ignored_does_not_count() -> None:
    targets = TEXT[:, 1:21].clone()
    targets[:, 12:] = -100
    assert found(targets, TEXT[:, :20]) == [1]


def test_what_is_no_text_of_the_model_has_no_distance() -> None:
    assert found(torch.randint(2, 50, (4, 20)), TEXT[:, :20]) == []
    assert found(torch.randint(2, 50, (4,)), TEXT) == []
    assert not is_tokens(torch, torch.zeros(4, 20))
    assert not is_tokens(torch, torch.zeros(4, 3, dtype=torch.int64))


@pytest.mark.parametrize("ahead", [-1, 0, 2])
def test_targets_are_moved_to_the_next_token_and_ignored_ones_stay_ignored(ahead: int) -> None:
    tokens, targets = TEXT[:, 2:22], TEXT[:, 2 + ahead : 22 + ahead].clone()
    targets[1, 5] = -100
    wanted = TEXT[:, 3:23].clone()
    wanted[1, 5] = -100
    for given, expected in ((targets, wanted), (targets.T.reshape(-1), wanted.T.reshape(-1))):
        moved = next_tokens(given, [tokens if given.dim() == 2 else tokens.T], -100, ahead)
        assert moved is not None
        rows = (moved, expected) if given.dim() == 2 else (moved.reshape(20, 4).T, expected.reshape(20, 4).T)
        assert torch.equal(rows[0][:, :-1], rows[1][:, :-1])
    assert next_tokens(targets, [tokens], -100, 1) is None


def test_answers_whose_first_positions_are_left_out_are_known() -> None:
    """`logits[:, 1:]` beside `text[:, 2:]` is right, and looks like targets that are two ahead."""
    tokens = TEXT[:, :20]
    states = torch.nn.Embedding(50, 8)(tokens)
    head = torch.nn.Linear(8, 50)
    assert begins_later(head(states)[:, 1:].flatten(0, 1), [tokens])
    assert begins_later(head(states[:, 2:]).log_softmax(-1), [tokens])
    assert begins_later(head(states.transpose(0, 1)[1:]), [tokens])
    assert not begins_later(head(states)[:, :-1].flatten(0, 1), [tokens])
    assert not begins_later(head(torch.cat([-states[..., 4:], states[..., :4]], dim=-1)), [tokens])
