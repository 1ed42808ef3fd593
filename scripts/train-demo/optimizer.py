"""Muon for the layers' matrices and AdamW for the rest; one learning-rate factor moves both."""

from collections import defaultdict

import torch
from torch import Tensor, nn


def orthogonal(matrices: Tensor) -> Tensor:
    """Five Newton-Schulz steps towards the nearest orthogonal matrix, for a stack of matrices at once."""
    x = matrices.bfloat16() if matrices.is_cuda else matrices
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.transpose(-2, -1)
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        square = x @ x.transpose(-2, -1)
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x.transpose(-2, -1) if tall else x


class Optimizer:
    def __init__(self, model: nn.Module, matrix_rate: float, rate: float, weight_decay: float) -> None:
        self.matrix_rate, self.rate, self.weight_decay = matrix_rate, rate, weight_decay
        stacks: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
        vectors: list[nn.Parameter] = []
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2 and "embed" not in name:
                stacks[parameter.shape].append(parameter)
            else:
                vectors.append(parameter)
        self.stacks = list(stacks.values())
        self.momenta = [
            torch.zeros((len(stack), *stack[0].shape), device=stack[0].device) for stack in self.stacks
        ]
        self.adam = torch.optim.AdamW(vectors, lr=rate, betas=(0.9, 0.95), weight_decay=0.0)

    @torch.no_grad()
    def step(self, factor: float) -> None:
        for stack, momentum in zip(self.stacks, self.momenta):
            gradient = torch.stack([parameter.grad for parameter in stack])
            momentum.lerp_(gradient, 0.05)
            update = orthogonal(gradient.lerp(momentum, 0.95)).float()
            rows, columns = update.shape[-2:]
            step = self.matrix_rate * factor
            torch._foreach_mul_(stack, 1 - step * self.weight_decay)
            torch._foreach_add_(stack, list(update.unbind()), alpha=-step * max(1.0, rows / columns) ** 0.5)
        for group in self.adam.param_groups:
            group["lr"] = self.rate * factor
        self.adam.step()

    def forget_gradients(self) -> None:
        for stack in self.stacks:
            for parameter in stack:
                parameter.grad = None
        self.adam.zero_grad(set_to_none=True)
