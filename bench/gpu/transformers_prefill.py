"""Times transformers' prefill (SDPA, bfloat16) of a Qwen3-8B shape with random weights.

The peer of bench/gpu/engine.ts.
"""
import json
import sys
import time
from pathlib import Path

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

config = Qwen3Config(**json.loads((Path(__file__).parent.parent / "models/qwen3-8b/config.json").read_text()))
config._attn_implementation = "sdpa"
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = Qwen3ForCausalLM(config).eval()
with torch.no_grad():
    for length in (2048, 16384):
        ids = torch.randint(0, config.vocab_size, (1, length), device="cuda")
        times = []
        for _ in range(6):
            torch.cuda.synchronize()
            started = time.perf_counter()
            model(input_ids=ids, use_cache=True, logits_to_keep=1)
            torch.cuda.synchronize()
            times.append((time.perf_counter() - started) * 1000)
        print(f"transformers prefill {length}: {sorted(times[1:])[2]:.1f} ms", flush=True)
sys.exit(0)
