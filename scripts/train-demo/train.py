"""Trains granary's demo model on one GPU for a set time and writes it in Hugging Face's layout."""

import argparse
import math
import os
import time
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from artefacts import write_folder, write_weights
from model import Config, Qwen3
from optimizer import Optimizer
from tokens import Part, Sampler, read_corpus, split, train_tokenizer

# Shares of the windows drawn, not of the text: the novels are small and are seen often.
WEIGHTS = {"novels": 0.20, "bible": 0.04, "lexica": 0.02, "dictionary": 0.05, "tales": 0.08, "chats": 0.61}
CHECKPOINT_SECONDS = 60.0


def rate_factor(fraction: float) -> float:
    """Linear warm-up over the first 2 %, then half a cosine down to nearly nothing."""
    return min(1.0, 0.02 + fraction / 0.02) * (
        0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, fraction)))
    )


def autocast(device: str):
    return torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda")


@torch.no_grad()
def evaluate(
    model: Qwen3, held_out: dict[str, Part], device: str, length: int, most_rows: int
) -> dict[str, float]:
    """Mean loss of a group's held-out text, in nats a token."""
    model.eval()
    losses = {}
    for group, part in held_out.items():
        rows = min(most_rows, (len(part.ids) - 1) // length)
        if rows > 0:
            ids = part.ids[: rows * length + 1].long().to(device)
            with autocast(device):
                losses[group] = model(ids[:-1].view(rows, length), ids[1:].view(rows, length)).item()
    model.train()
    return losses


def described(losses: dict[str, float]) -> str:
    mean = sum(WEIGHTS[group] * loss for group, loss in losses.items()) / sum(
        WEIGHTS[group] for group in losses
    )
    return f"{mean:.3f} (" + ", ".join(f"{group} {loss:.3f}" for group, loss in losses.items()) + ")"


def train(model: Qwen3, sampler: Sampler, held_out: dict[str, Part], options: argparse.Namespace) -> None:
    device = options.device
    compiled = torch.compile(model, dynamic=False) if device == "cuda" else model
    optimizer = Optimizer(model, options.matrix_rate, options.rate, weight_decay=0.05)

    def backward(length: int) -> torch.Tensor:
        tokens, targets = sampler.draw(options.batch_tokens // length, length)
        with autocast(device):
            loss = compiled(tokens, targets)
        loss.backward()
        return loss.detach()

    began = time.monotonic()
    for length in {options.length, options.long_length}:
        backward(length)
        optimizer.forget_gradients()
    if device == "cuda":
        torch.cuda.synchronize()
    print(f"first passes, compilation included: {time.monotonic() - began:.1f} s", flush=True)
    began = saved = time.monotonic()
    step, mean = 0, torch.zeros((), device=device)
    while (elapsed := time.monotonic() - began) < options.seconds:
        long = step % options.long_every == options.long_every - 1
        mean += backward(options.long_length if long else options.length)
        optimizer.step(rate_factor(elapsed / options.seconds))
        optimizer.forget_gradients()
        step += 1
        if step % options.report_every == 0:
            loss = mean.item() / options.report_every
            mean.zero_()
            tokens = step * options.batch_tokens
            print(
                f"step {step}: {elapsed:.0f} s, {tokens / 1e6:.0f} M tokens, training loss {loss:.3f}",
                flush=True,
            )
            if not math.isfinite(loss):
                raise RuntimeError("the loss is not finite")
            if step % (10 * options.report_every) == 0:
                print(
                    "  held out:",
                    described(evaluate(model, held_out, device, options.length, 64)),
                    flush=True,
                )
        if time.monotonic() - saved > CHECKPOINT_SECONDS:
            write_weights(options.out, model)
            saved = time.monotonic()
    write_weights(options.out, model)
    for length in (512, 2048):
        print(
            f"held out, windows of {length}:",
            described(evaluate(model, held_out, device, length, 131072 // length)),
        )


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=Path("build/train-demo/corpus/corpus.jsonl.xz"))
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "build/train-demo/model")))
    parser.add_argument(
        "--continue-from", type=Path, help="a written folder: keeps its tokenizer, goes on from its weights"
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--batch-tokens", type=int, default=98304)
    parser.add_argument("--length", type=int, default=512, help="tokens a window")
    parser.add_argument("--long-length", type=int, default=2048, help="tokens a window in long steps")
    parser.add_argument("--long-every", type=int, default=6, help="every which step is a long one")
    parser.add_argument("--matrix-rate", type=float, default=0.02)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--dropout", type=float, default=0.05)
    parser.add_argument("--report-every", type=int, default=50)
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("high")
    began = time.monotonic()
    groups = read_corpus(options.corpus)
    config = Config()
    if options.continue_from:
        tokenizer = Tokenizer.from_file(str(options.continue_from / "tokenizer.json"))
    else:
        tokenizer = train_tokenizer(groups, config.vocab_size)
    print(f"tokenizer of {tokenizer.get_vocab_size()} entries: {time.monotonic() - began:.1f} s", flush=True)
    training, held_out = split(tokenizer, groups)
    print(f"corpus encoded: {time.monotonic() - began:.1f} s", flush=True)
    for group, part in training.items():
        characters = sum(len(text.text) for text in groups[group] if not text.held_out)
        mean = characters / len(part.ids)
        print(f"  {group:12} {len(part.ids) / 1e6:6.2f} M tokens, {mean:.2f} characters a token")
    write_folder(options.out, tokenizer, config)
    model = Qwen3(config, options.dropout).to(options.device)
    if options.continue_from:
        weights = load_file(options.continue_from / "model.safetensors")
        model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    print(f"{sum(parameter.numel() for parameter in model.parameters())} parameters")
    train(model, Sampler(training, WEIGHTS, options.device), held_out, options)
    print(f"done: {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
