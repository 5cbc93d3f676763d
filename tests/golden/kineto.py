"""Writes traces as PyTorch's profiler would of a DDP step, made up, with a known answer: kineto.py RANK0.json
RANK1.json ...

A model of 36 equal layers: a layer's forward takes 4.2 ms, its backward 8.4 ms, and then its gradients go out in one
all-reduce of 17 ms, one after the other, beside the backward of the layers before. So of 36 x 17 ms of communication
35 x 8.4 ms are hidden. Each rank computes 1 % longer than the one before it; an all-reduce begins on a rank when its
own gradients are there, and moves when those of the last rank are.
"""

import json
import sys

LAYERS, FORWARD_MS, BACKWARD_MS, ALL_REDUCE_MS, OPTIMIZER_MS, STEPS = 36, 4.2, 8.4, 17.0, 29.0, 3
KERNELS = [  # name, share of a layer's time
    ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", 0.72),
    ("void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 64> >(Flash_fwd_params)", 0.07),
    ("triton_poi_fused_gelu_view_3", 0.14),
    ("triton_per_fused_native_layer_norm_0", 0.07),
]
BACKWARD_OF = {
    "flash_fwd_kernel": "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel",
    "Flash_fwd": "Flash_bwd",
    "native_layer_norm": "native_layer_norm_backward",
    "gelu": "gelu_backward",
}


def trace(rank, ranks):
    events = []

    def add(cat, name, at_ms, lasts_ms, stream):
        args = {"device": 0, "stream": stream} if cat == "kernel" else {}
        events.append(
            {
                "ph": "X",
                "cat": cat,
                "name": name,
                "pid": 0,
                "tid": stream,
                "ts": at_ms * 1000,
                "dur": lasts_ms * 1000,
                "args": args,
            }
        )

    def layer(at_ms, lasts_ms, backward):
        for name, share in KERNELS:
            for forward_name, backward_name in BACKWARD_OF.items() if backward else ():
                name = name.replace(forward_name, backward_name)
            add("kernel", name, at_ms, share * lasts_ms, 7)
            at_ms += share * lasts_ms

    slower, slowest = 1 + 0.01 * rank, 1 + 0.01 * (ranks - 1)
    begin = 0.0
    for step in range(STEPS):
        for i in range(LAYERS):
            layer(begin + i * FORWARD_MS * slower, FORWARD_MS * slower, False)
        forward = LAYERS * FORWARD_MS
        ended = 0.0
        for i in range(LAYERS):
            layer(begin + (forward + i * BACKWARD_MS) * slower, BACKWARD_MS * slower, True)
            ready = begin + (forward + (i + 1) * BACKWARD_MS) * slower
            moves = max(ended, begin + (ready - begin) * slowest / slower)
            at, ended = max(ended, ready), moves + ALL_REDUCE_MS
            add(
                "kernel",
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                at,
                ended - at,
                20,
            )
        add(
            "kernel", "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor<float> >", ended, OPTIMIZER_MS, 7
        )
        add("user_annotation", f"ProfilerStep#{step + 2}", begin, ended + OPTIMIZER_MS - begin, 1)
        begin = ended + OPTIMIZER_MS
    return {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks}, "traceEvents": events}


for number, path in enumerate(sys.argv[1:]):
    with open(path, "w") as file:
        json.dump(trace(number, len(sys.argv) - 1), file)
