"""Times paged attention of libgranary_cuda beside PyTorch's contiguous SDPA, interleaved: graphs, cold L2,
bfloat16, pages of 64 in random order, medians of 20; 32/8 heads of 128 unless a case names others. Also
prints how far the two outputs lie apart. Several builds of the library may be compared in one run; NO_PEERS
in the environment leaves the peer out.

    python3 bench/gpu/attention_peers.py LIBRARY[,LIBRARY ...] [name part of a case ...]
"""

import ctypes
import os
import statistics
import sys
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

PAGE = 64
ROTATION_BYTES = 256 << 20  # buffers rotate beyond what the L2 holds
REPEATS, WARM_UPS = 20, 3
BFLOAT16 = 1

int64s = "q kCache vCache pageTable tableRows queryStarts seqLens sinks out scratch qStride outStride"
int64s += " kPageStrideBytes vPageStrideBytes"
int32s = "tableWidth pageSize numSeqs tokensPerRow maxQueryTokens maxSeqLen"
int32s += " numQHeads numKvHeads headDim vHeadDim windowLeft dtype kvDtype"


class Heads(NamedTuple):
    q: int
    kv: int
    dim: int
    value_dim: int

    @property
    def token_bytes(self):
        return self.kv * (self.dim + self.value_dim) * 2


class Attention(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in int64s.split()]
    _fields_ += [(name, ctypes.c_int32) for name in int32s.split()]
    _fields_ += [("scale", ctypes.c_float), ("softcap", ctypes.c_float), ("reserved", ctypes.c_int32)]


class Init(ctypes.Structure):
    _fields_ = [("workspaceBytes", ctypes.c_int64), ("deviceOrdinal", ctypes.c_int32)]
    _fields_ += [
        ("numThreads", ctypes.c_int32),
        ("debugChecks", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class Library:
    """The part of the C ABI that this bench needs."""

    def __init__(self, path):
        self.name = os.path.basename(path).removesuffix(".so").removeprefix("libgranary_")
        self.c = ctypes.CDLL(path)
        for name in ("event_create", "capture_end", "last_error"):
            getattr(self.c, f"granary_{name}").restype = ctypes.c_void_p
        self.c.granary_event_elapsed_ns.restype = ctypes.c_double
        self.c.granary_attention_scratch_bytes.restype = ctypes.c_int64
        self.check(self.c.granary_init(ctypes.byref(Init(0, 0, 1, 0, 0))))
        self.begin, self.end = (ctypes.c_void_p(self.c.granary_event_create(1)) for _ in range(2))

    def check(self, status):
        if status != 0:
            raise RuntimeError(ctypes.string_at(self.c.granary_last_error()).decode())

    def capture(self, launches):
        self.check(self.c.granary_capture_begin())
        for launch in launches:
            launch()
        return ctypes.c_void_p(self.c.granary_capture_end())

    def time_us(self, graph):
        self.check(self.c.granary_event_record(self.begin))
        self.check(self.c.granary_graph_launch(graph))
        self.check(self.c.granary_event_record(self.end))
        self.check(self.c.granary_event_wait(self.end))
        return self.c.granary_event_elapsed_ns(self.begin, self.end) / 1000


class Case:
    """One batch: paged caches in random order, the same keys and values contiguous for the peer."""

    def __init__(self, heads, lengths, new):
        torch.manual_seed(1)
        self.heads, self.lengths, self.new = heads, lengths, new
        pages_of = [-(-length // PAGE) for length in lengths]
        num_pages, width = sum(pages_of), max(pages_of)
        total = num_pages * PAGE * heads.token_bytes
        self.rotations = max(1, min(32, -(-ROTATION_BYTES // total)))
        shape = (1 + num_pages * self.rotations, PAGE, heads.kv)
        dims = (heads.dim, heads.value_dim)
        self.k, self.v = (torch.randn(*shape, dim, device="cuda", dtype=torch.bfloat16) for dim in dims)
        order = 1 + torch.randperm(num_pages * self.rotations, device="cuda").int()
        self.tables = torch.zeros(self.rotations, len(lengths), width, device="cuda", dtype=torch.int32)
        at = 0
        for rotation in range(self.rotations):
            for seq, pages in enumerate(pages_of):
                self.tables[rotation, seq, :pages] = order[at : at + pages]
                at += pages
        rows = len(lengths) * new
        self.q = torch.randn(rows, heads.q * heads.dim, device="cuda", dtype=torch.bfloat16)
        self.out = torch.full((rows, heads.q * heads.value_dim), float("nan"), device="cuda").bfloat16()
        self.rows = torch.arange(len(lengths), device="cuda", dtype=torch.int32)
        self.seq_lens = torch.tensor(lengths, device="cuda", dtype=torch.int32)
        self.args = self.arguments(width)
        self.scratch = None  # until it is reserved

    def arguments(self, width):
        heads = self.heads
        page_bytes = [PAGE * heads.kv * dim * 2 for dim in (heads.dim, heads.value_dim)]
        args = Attention(q=self.q.data_ptr(), kCache=self.k.data_ptr(), vCache=self.v.data_ptr())
        values = dict(
            tableRows=self.rows.data_ptr(), seqLens=self.seq_lens.data_ptr(), out=self.out.data_ptr()
        )
        values |= dict(qStride=heads.q * heads.dim, outStride=heads.q * heads.value_dim)
        values |= dict(kPageStrideBytes=page_bytes[0])
        values |= dict(
            vPageStrideBytes=page_bytes[1], tableWidth=width, pageSize=PAGE, numSeqs=len(self.lengths)
        )
        values |= dict(tokensPerRow=self.new, maxQueryTokens=self.new, maxSeqLen=max(self.lengths))
        values |= dict(numQHeads=heads.q, numKvHeads=heads.kv, headDim=heads.dim, vHeadDim=heads.value_dim)
        values |= dict(windowLeft=-1, dtype=BFLOAT16, kvDtype=BFLOAT16, scale=heads.dim**-0.5)
        for name, value in values.items():
            setattr(args, name, value)
        return args

    def reserve(self, libraries):
        """Scratch for the neediest library, full of NaN."""
        size = max(
            library.c.granary_attention_scratch_bytes(ctypes.byref(self.args)) for library in libraries
        )
        self.scratch = torch.full((max(1, size),), 255, device="cuda", dtype=torch.uint8)
        self.args.scratch = self.scratch.data_ptr()

    def launch(self, library, rotation):
        self.args.pageTable = self.tables[rotation % self.rotations].data_ptr()
        library.check(library.c.granary_attention(ctypes.byref(self.args)))

    def keys_and_values(self, rotation, seq):
        """Keys and values of one sequence as the peer takes them."""
        length = self.lengths[seq]
        pages = self.tables[rotation, seq, : -(-length // PAGE)].long()
        gather = (
            lambda cache: cache[pages]
            .view(-1, self.heads.kv, cache.shape[-1])[:length]
            .transpose(0, 1)
            .unsqueeze(0)
            .contiguous()
        )
        return gather(self.k), gather(self.v)

    def error(self, library):
        """Relative distance from the peer, over up to eight sequences."""
        self.out.fill_(float("nan"))
        torch.cuda.synchronize()
        self.launch(library, 0)
        library.check(library.c.granary_synchronize())
        worst = 0.0
        for seq in range(0, len(self.lengths), -(-len(self.lengths) // 8)):
            groups = self.heads.q // self.heads.kv
            k, v = (x.repeat_interleave(groups, 1) for x in self.keys_and_values(0, seq))
            mine = slice(seq * self.new, (seq + 1) * self.new)
            q = self.q[mine].view(1, self.new, self.heads.q, self.heads.dim).transpose(1, 2)
            expected = F.scaled_dot_product_attention(
                q, k, v, causal_lower_right(self.new, self.lengths[seq])
            )
            expected = expected.transpose(1, 2).reshape(self.new, -1).float()
            worst = max(worst, ((self.out[mine].float() - expected).norm() / expected.norm()).item())
        return worst

    def peer_graph(self, backend):
        """Batched SDPA over contiguous copies; only for equal lengths and no cached prefix."""
        batch, new = len(self.lengths), self.new
        q = self.q.view(batch, new, self.heads.q, self.heads.dim).transpose(1, 2).contiguous()
        operands = []
        for rotation in range(self.rotations):
            pairs = [self.keys_and_values(rotation, seq) for seq in range(batch)]
            operands.append([torch.cat(part) for part in zip(*pairs)])
        call = lambda k, v: F.scaled_dot_product_attention(q, k, v, is_causal=new > 1, enable_gqa=True)
        with sdpa_kernel(backend):
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(2):
                    call(*operands[0])
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                for i in range(max(self.rotations, 4)):
                    self.kept = call(*operands[i % self.rotations])
        self.operands = operands
        return graph


def peer_time_us(graph):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000


def fastest_peer(case):
    """cuDNN is the faster of PyTorch's backends here, but does not take every shape."""
    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION):
        try:
            return {backend.name.split("_")[0].lower(): case.peer_graph(backend)}
        except RuntimeError:
            continue
    return {}


def measure(libraries, name, heads, lengths, new):
    case = Case(heads, lengths, new)
    case.reserve(libraries)
    count = max(case.rotations, 4)
    errors = [case.error(library) for library in libraries]
    captured = [
        library.capture([lambda i=i: case.launch(library, i) for i in range(count)])
        for library in libraries
    ]
    peers = {}
    if len(set(lengths)) == 1 and new in (1, lengths[0]) and "NO_PEERS" not in os.environ:
        peers = fastest_peer(case)
    times = {runner: [] for runner in [library.name for library in libraries] + list(peers)}
    for _ in range(WARM_UPS + REPEATS):
        for library, graph in zip(libraries, captured):
            times[library.name].append(library.time_us(graph) / count)
        for peer, graph in peers.items():
            times[peer].append(peer_time_us(graph) / count)
    medians = {runner: statistics.median(values[WARM_UPS:]) for runner, values in times.items()}
    dims = heads.dim + heads.value_dim
    work = sum(heads.q * dims * (2 * new * (length - new) + new * new) for length in lengths)
    amount, unit = (sum(lengths) * heads.token_bytes, "TB/s") if new == 1 else (work, "TFLOP/s")
    best = next((medians[peer] for peer in peers), None)
    for runner, us in medians.items():
        error = f" error {errors[list(medians).index(runner)]:.1e}" if runner not in peers else ""
        share = f" {best / us:.2f} of SDPA" if best and runner not in peers else ""
        print(
            f"{name:24s} {runner:8s} {us:8.1f} us {amount / us / 1e6:7.2f} {unit}{share}{error}", flush=True
        )
    for library, graph in zip(libraries, captured):
        library.c.granary_graph_destroy(graph)


def main():
    libraries = [Library(path) for path in sys.argv[1].split(",")]
    mixed = [100 + round(29_900 * i / 63) for i in range(64)]
    mixed = [mixed[i] for i in torch.randperm(64, generator=torch.Generator().manual_seed(9)).tolist()]
    common = Heads(32, 8, 128, 128)
    cases = [
        (f"decode {batch}x{length}", common, [length] * batch, 1)
        for batch, length in ((1, 4096), (1, 32768), (8, 4096), (64, 1024), (64, 4096), (64, 8192))
    ]
    cases.append(("decode 64 mixed", common, mixed, 1))
    cases += [(f"prefill {length}", common, [length], length) for length in (2048, 4096, 8192, 16384)]
    cases += [
        ("prefill 16k+2048", common, [16384 + 2048], 2048),
        ("prefill 32k+16", common, [32768 + 16], 16),
    ]
    for heads in (Heads(16, 4, 256, 256), Heads(32, 8, 192, 192), Heads(32, 8, 192, 128)):
        name = f"prefill {heads.dim}/{heads.value_dim}"
        cases += [(f"{name} {length}", heads, [length], length) for length in (2048, 8192)]
        cases.append((f"{name} 16k+2048", heads, [16384 + 2048], 2048))
    for name, heads, lengths, new in cases:
        if len(sys.argv) < 3 or any(part in name for part in sys.argv[2:]):
            measure(libraries, name, heads, lengths, new)
            torch.cuda.empty_cache()


main()
