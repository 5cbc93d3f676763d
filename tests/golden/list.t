The catalogue. (Figures and sources are tests/unit/test_catalogue.c's business: here it is the listing.)

    $ stepsim list gpus
    name         device                  bf16, dense  fp32, vector    memory  bandwidth
    -----------------------------------------------------------------------------------
    a100-sxm-40  NVIDIA A100 SXM4 40GB   312 TFLOP/s  19.5 TFLOP/s  40.0 GiB  1.55 TB/s
    a100-sxm-80  NVIDIA A100 SXM4 80GB   312 TFLOP/s  19.5 TFLOP/s  80.0 GiB  2.04 TB/s
    b200         NVIDIA B200 SXM 180GB  2.25 PFLOP/s  75.0 TFLOP/s   178 GiB  7.70 TB/s
    h100-pcie*   NVIDIA H100 PCIe 80GB   756 TFLOP/s  51.2 TFLOP/s  79.6 GiB  2.04 TB/s
    h100-sxm     NVIDIA H100 SXM5 80GB   989 TFLOP/s  66.9 TFLOP/s  79.6 GiB  3.35 TB/s
    h200-sxm     NVIDIA H200 SXM 141GB   989 TFLOP/s  66.9 TFLOP/s   140 GiB  4.80 TB/s
    * a number in its file rests on memory (unverified: true); predictions that use it say so

    $ stepsim list systems
    name              system                      GPUs of a node   to a GPU of the node  to another node, a GPU
    -----------------------------------------------------------------------------------------------------------
    aws-p4d           AWS p4d.24xlarge            8 x a100-sxm-40              240 GB/s               6.25 GB/s
    aws-p4de          AWS p4de.24xlarge           8 x a100-sxm-80              240 GB/s               6.25 GB/s
    aws-p5            AWS p5.48xlarge             8 x h100-sxm                 371 GB/s               50.0 GB/s
    aws-p5en          AWS p5en.48xlarge           8 x h200-sxm                 371 GB/s               50.0 GB/s
    aws-p6-b200       AWS p6-b200.48xlarge        8 x b200                     722 GB/s               50.0 GB/s
    azure-nd-a100-v4  Azure ND A100 v4 (ND96asr)  8 x a100-sxm-40              240 GB/s               25.0 GB/s
    azure-nd-h100-v5  Azure ND H100 v5 (ND96isr)  8 x h100-sxm                 371 GB/s               50.0 GB/s
    dgx-a100          NVIDIA DGX A100 640GB       8 x a100-sxm-80              240 GB/s               25.0 GB/s
    dgx-a100-320      NVIDIA DGX A100 320GB       8 x a100-sxm-40              240 GB/s               25.0 GB/s
    dgx-b200          NVIDIA DGX B200             8 x b200                     722 GB/s               50.0 GB/s
    dgx-h100          NVIDIA DGX H100             8 x h100-sxm                 371 GB/s               50.0 GB/s
    dgx-h200*         NVIDIA DGX H200             8 x h200-sxm                 371 GB/s               50.0 GB/s
    gcp-a3-mega       GCP a3-megagpu-8g           8 x h100-sxm                 371 GB/s               25.0 GB/s
    * a number in its file rests on memory (unverified: true); predictions that use it say so

    $ stepsim list models
    name          parameters  layers  hidden  heads  kv heads   vocab  sequence  experts
    ------------------------------------------------------------------------------------
    bert-base        109.5 M      12     768     12        12   30522       512        0
    bert-large       335.1 M      24    1024     16        16   30522       512        0
    gpt2-1.5b         1558 M      48    1600     25        25   50257      1024        0
    gpt2-124m        124.4 M      12     768     12        12   50257      1024        0
    gpt2-350m        354.8 M      24    1024     16        16   50257      1024        0
    gpt2-774m        774.0 M      36    1280     20        20   50257      1024        0
    gpt3-1.3b         1316 M      24    2048     16        16   50257      2048        0
    gpt3-125m        125.2 M      12     768     12        12   50257      2048        0
    gpt3-13b         12853 M      40    5120     40        40   50257      2048        0
    gpt3-175b       174604 M      96   12288     96        96   50257      2048        0
    gpt3-2.7b         2652 M      32    2560     32        32   50257      2048        0
    gpt3-350m        355.9 M      24    1024     16        16   50257      2048        0
    gpt3-6.7b         6658 M      32    4096     32        32   50257      2048        0
    gpt3-760m        760.3 M      24    1536     16        16   50257      2048        0
    llama2-13b       13016 M      40    5120     40        40   32000      4096        0
    llama2-70b       68977 M      80    8192     64         8   32000      4096        0
    llama2-7b         6738 M      32    4096     32        32   32000      4096        0
    llama3-405b     405853 M     126   16384    128         8  128256      8192        0
    llama3-70b       70554 M      80    8192     64         8  128256      8192        0
    llama3-8b         8030 M      32    4096     32         8  128256      8192        0
    mixtral-8x7b     46703 M      32    4096     32         8   32000     32768        8
    mpt-125m         125.3 M      12     768     12        12   50368      2048        0
    mpt-13b          12854 M      40    5120     40        40   50368      2048        0
    mpt-1b            1316 M      24    2048     16        16   50368      2048        0
    mpt-30b          29975 M      48    7168     56        56   50368      2048        0
    mpt-350m         356.0 M      24    1024     16        16   50368      2048        0
    mpt-3b            2652 M      32    2560     20        20   50368      2048        0
    mpt-70b          64862 M      80    8192     64        64   50368      2048        0
    mpt-760m         760.5 M      24    1536     12        12   50368      2048        0
    mpt-7b            6659 M      32    4096     32        32   50368      2048        0

    $ stepsim list stacks
    name           strategy  compute  weights  on the wire  fused  overlap
    ----------------------------------------------------------------------
    deepspeed      ddp       bf16     bf16     bf16         yes    yes
    megatron-core  ddp       bf16     bf16     fp32         yes    yes
    pytorch-ddp    ddp       bf16     fp32     fp32         yes    yes
    pytorch-fsdp   fsdp      bf16     fp32     fp32         yes    yes

    $ stepsim list parameters | head -n 4 | cut -c 1-90
    GPU          parameter     value  meaning                                               so
    ------------------------------------------------------------------------------------------
    a100-sxm-40  gemm_share    0.869  of the matrix rate that large GEMMs reach             27
    a100-sxm-40  memory_share  0.871  of the memory bandwidth that streaming kernels reach  co
