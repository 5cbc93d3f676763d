The catalogue. (Figures and sources are tests/unit/test_catalogue.c's business: here it is the listing.)

    $ stepsim list gpus
    name            device                                    bf16    fp8   fp32    memory  bandwidth  ridge  links   PCIe      W    USD  USD/h
    -------------------------------------------------------------------------------------------------------------------------------------------
    a10*            NVIDIA A10                                 125      -   31.2  22.5 GiB   600 GB/s    208      -   31.5    150      -   1.10
    a100-pcie-40    NVIDIA A100 PCIe 40GB                      312      -   19.5  40.0 GiB  1.55 TB/s    201    300   31.5    250      -      -
    a100-pcie-80    NVIDIA A100 PCIe 80GB                      312      -   19.5  80.0 GiB  1.94 TB/s    161    300   31.5    300  11500   1.59
    a100-sxm-40     NVIDIA A100 SXM4 40GB                      312      -   19.5  40.0 GiB  1.55 TB/s    201    300   31.5    400      -   2.74
    a100-sxm-64*    NVIDIA A100 SXM4 64GB                      358      -   22.4  64.0 GiB  1.64 TB/s    218    300   31.5    400      -      -
    a100-sxm-80     NVIDIA A100 SXM4 80GB                      312      -   19.5  80.0 GiB  2.04 TB/s    153    300   31.5    400  11500   3.43
    a10g*           NVIDIA A10G                                 70      -     35  22.5 GiB   600 GB/s    117      -   31.5    300      -   2.04
    a30*            NVIDIA A30                                 165      -   10.3  24.0 GiB   933 GB/s    177    100   31.5    165      -      -
    a40*            NVIDIA A40                               149.7      -   37.4  45.0 GiB   696 GB/s    215  56.25   31.5    300      -      -
    a800-sxm-80     NVIDIA A800 SXM4 80GB                      312      -   19.5  80.0 GiB  2.04 TB/s    153    200   31.5    400      -      -
    b100*           NVIDIA B100 SXM 192GB                     1750   3500     60   179 GiB  8.00 TB/s    219    900     63    700      -      -
    b200            NVIDIA B200 SXM 180GB                     2250   4500     75   178 GiB  7.70 TB/s    292    900     63   1000  40000  14.24
    b300*           NVIDIA B300 SXM 288GB                     2250   4500     75   269 GiB  8.00 TB/s    281    900    121   1100      -  17.80
    cs-2*           Cerebras CS-2 (WSE-2)                fp16 7500      -    234  37.3 GiB  20.0 PB/s  0.375      -      -  23000      -      -
    cs-3*           Cerebras CS-3 (WSE-3)               fp16 15800      -    494  41.0 GiB  21.0 PB/s  0.752      -      -  23000      -      -
    gaudi2*         Intel Gaudi 2                              432    865   13.5  96.0 GiB  2.46 TB/s    176  262.5   31.5    600  8125*      -
    gaudi3*         Intel Gaudi 3                             1678   1678   52.4   128 GiB  3.70 TB/s    454    525     63    900  15625      -
    gb200*          NVIDIA GB200 (one GPU of an NVL72)        2500   5000     80   185 GiB  8.00 TB/s    313    900     63   1200      -  28.51
    gb300*          NVIDIA GB300 (one GPU of an NVL72)        2500   5000     80   278 GiB  8.00 TB/s    313    900    121   1400      -  18.00
    gh200*          NVIDIA GH200 96GB                          989   1979     67  95.6 GiB  4.00 TB/s    247    450     63   1000      -   2.29
    gh200-120*      NVIDIA GH200 120GB                         989   1979     67  95.6 GiB  4.00 TB/s    247    450     63    680      -      -
    gh200-144*      NVIDIA GH200 144GB                         989   1979     67   134 GiB  4.90 TB/s    202    450     63   1000      -      -
    groq-lpu*       Groq LPU (GroqChip1)                  fp16 188      -   5.88   219 MiB  80.0 TB/s   2.35      -   31.5    215      -      -
    h100-64*        NVIDIA H100 64GB HBM2e                   989.4   1979   66.9  64.0 GiB  1.64 TB/s    603    450     63    700      -      -
    h100-96*        NVIDIA H100 96GB HBM2e                   989.4   1979   66.9  95.6 GiB  2.40 TB/s    412    450     63    500      -      -
    h100-nvl*       NVIDIA H100 NVL 94GB                     835.5   1670     60  93.6 GiB  3.94 TB/s    212    300     63    400      -   3.19
    h100-pcie*      NVIDIA H100 PCIe 80GB                      756   1513   51.2  79.6 GiB  2.04 TB/s    371    300     63    350  27500   2.89
    h100-sxm        NVIDIA H100 SXM5 80GB                    989.4   1979   66.9  79.6 GiB  3.35 TB/s    295    450     63    700  30000   6.88
    h20*            NVIDIA H20 96GB                            148    296     44  95.6 GiB  4.00 TB/s     37    450     63    400      -      -
    h20-141*        NVIDIA H20 141GB                           148    296     44   141 GiB  4.80 TB/s     31    450     63    400      -      -
    h200-nvl*       NVIDIA H200 NVL 141GB                    835.5   1670     60   140 GiB  4.80 TB/s    174    450     63    600      -      -
    h200-sxm        NVIDIA H200 SXM 141GB                    989.4   1979   66.9   140 GiB  4.80 TB/s    206    450     63    700  35000   7.91
    h800-sxm*       NVIDIA H800 SXM5 80GB                    989.4   1979   66.9  79.6 GiB  3.35 TB/s    295    200     63    700      -      -
    l4*             NVIDIA L4                                  121  242.5   30.3  22.5 GiB   300 GB/s    403      -   31.5     72      -   0.80
    l40*            NVIDIA L40                                 181    362   90.5  45.0 GiB   864 GB/s    209      -   31.5    300      -   0.82
    l40s*           NVIDIA L40S                                362    733   91.6  45.0 GiB   864 GB/s    419      -   31.5    350  7500*   1.86
    mi210*          AMD Instinct MI210                         181      -   22.6  64.0 GiB  1.64 TB/s    111    150   31.5    300      -      -
    mi250x*         AMD Instinct MI250X, the module            383      -   47.9   128 GiB  3.28 TB/s    117    400   31.5    560      -      -
    mi250x-gcd*     AMD Instinct MI250X, one GCD             191.5      -  23.95  64.0 GiB  1.64 TB/s    117    200   31.5    280      -      -
    mi300a*         AMD Instinct MI300A                      980.6   1961  122.6   128 GiB  5.30 TB/s    185    384     63    760      -      -
    mi300x          AMD Instinct MI300X                       1307   2615  163.4   192 GiB  5.30 TB/s    247    448     63    750  17500   6.00
    mi325x*         AMD Instinct MI325X                       1307   2615  163.4   256 GiB  6.00 TB/s    218    448     63   1000      -   1.95
    mi350x*         AMD Instinct MI350X                       2307   4614  144.2   288 GiB  8.00 TB/s    288  537.6     63   1000      -      -
    mi355x*         AMD Instinct MI355X                       2517   5033  157.3   288 GiB  8.00 TB/s    315  537.6     63   1400      -   8.60
    p100-pcie*      NVIDIA Tesla P100 PCIe 16GB           fp16 9.3      -    9.3  15.9 GiB   732 GB/s     13      -  15.75    250      -      -
    p100-sxm*       NVIDIA Tesla P100 SXM2 16GB          fp16 10.6      -   10.6  15.9 GiB   732 GB/s     14     80  15.75    300   5699      -
    rtx-a4000*      NVIDIA RTX A4000                          76.7      -   19.2  16.0 GiB   448 GB/s    171      -   31.5    140      -      -
    rtx-a4500*      NVIDIA RTX A4500                          94.6      -   23.7  20.0 GiB   640 GB/s    148  56.25   31.5    200      -      -
    rtx-a5000*      NVIDIA RTX A5000                         111.1      -   27.8  24.0 GiB   768 GB/s    145  56.25   31.5    230      -      -
    rtx-a5500*      NVIDIA RTX A5500                         136.4      -   34.1  24.0 GiB   768 GB/s    178  56.25   31.5    230      -      -
    rtx-a6000*      NVIDIA RTX A6000                         154.8      -   38.7  48.0 GiB   768 GB/s    202  56.25   31.5    300  4650*   1.09
    rtx-pro-6000*   NVIDIA RTX PRO 6000 Blackwell            503.8   1008    125  95.6 GiB  1.79 TB/s    281      -     63    600   8565   3.36
    rtx3070*        NVIDIA GeForce RTX 3070                   40.6      -   20.3  8.00 GiB   448 GB/s     91      -   31.5    220      -      -
    rtx3080*        NVIDIA GeForce RTX 3080                   59.5      -   29.8  10.0 GiB   760 GB/s     78      -   31.5    320      -      -
    rtx3090*        NVIDIA GeForce RTX 3090                   71.2      -   35.6  24.0 GiB   936 GB/s     76  56.25   31.5    350  1499*   0.50
    rtx4080-super*  NVIDIA GeForce RTX 4080 SUPER            104.4  208.9   52.2  16.0 GiB   736 GB/s    142      -   31.5    320      -      -
    rtx4090         NVIDIA GeForce RTX 4090                  165.2  330.3   82.6  24.0 GiB  1.01 TB/s    164      -   31.5    450   1599   0.74
    rtx4090-48*     NVIDIA GeForce RTX 4090 48GB             165.2  330.3   82.6  48.0 GiB  1.01 TB/s    164      -   31.5    450      -      -
    rtx5090*        NVIDIA GeForce RTX 5090                  209.5    419  104.8  31.8 GiB  1.79 TB/s    117      -     63    575   1999   0.99
    rtx6000-ada*    NVIDIA RTX 6000 Ada Generation           364.2  728.5   91.1  48.0 GiB   960 GB/s    379      -   31.5    300  6800*   0.84
    rtx8000*        NVIDIA Quadro RTX 8000              fp16 130.5      -   16.3  45.0 GiB   672 GB/s    194     50  15.75    260      -      -
    t4*             NVIDIA T4                              fp16 65      -    8.1  15.0 GiB   320 GB/s    203      -  15.75     70      -   0.53
    tpu-v3*         Google TPU v3                              123      -   3.84  32.0 GiB   900 GB/s    137    328      -    450      -      -
    tpu-v4*         Google TPU v4                              275      -   8.59  32.0 GiB  1.20 TB/s    229    300      -    192      -      -
    tpu-v5e*        Google TPU v5e                             197      -   6.16  16.0 GiB   819 GB/s    241    200      -      -      -      -
    tpu-v5p*        Google TPU v5p                             459    459   14.3  96.0 GiB  2.77 TB/s    166    600      -      -      -   4.20
    tpu-v6e*        Google TPU v6e Trillium                    918    918   28.7  32.0 GiB  1.60 TB/s    574    400      -      -      -   2.70
    tpu-v7x*        Google TPU7x Ironwood                     2307   4614   72.1   192 GiB  7.38 TB/s    313    600      -      -      -      -
    trainium1*      AWS Trainium1                              190    190   5.94  32.0 GiB   820 GB/s    232    384      -      -      -  1.34*
    trainium2*      AWS Trainium2                              667   1299   20.8  96.0 GiB  2.90 TB/s    230    640      -      -      -      -
    v100-pcie*      NVIDIA Tesla V100 PCIe 16GB           fp16 112      -     14  15.8 GiB   900 GB/s    124      -  15.75    250      -      -
    v100-sxm-16*    NVIDIA Tesla V100 SXM2 16GB           fp16 125      -   15.7  15.8 GiB   900 GB/s    139    150  15.75    300  10000   0.79
    v100-sxm-32*    NVIDIA Tesla V100 SXM2 32GB           fp16 125      -   15.7  31.7 GiB   900 GB/s    139    150  15.75    300  10000  0.79*
    bf16 (fp16 if a GPU has no bf16), fp8: dense matrix rates; fp32: vector rate; all in TFLOP/s;
    ridge: FLOP/B above which bf16 is bound by compute;
    links: all NVLinks (or the maker's own links) of one GPU; links and PCIe in GB/s in one direction;
    USD, USD/h: price and rent of one GPU, dated in configs/gpus
    * a number in its file has no checked source (unverified: true); predictions that use it say so

    $ stepsim list systems
    name                  system                                             GPUs of a node    joined by   pair   node  NICs, Gb/s    out      kW      USD   USD/h
    --------------------------------------------------------------------------------------------------------------------------------------------------------------
    aws-g5*               AWS g5.48xlarge                                    8 x a10g          PCIe          24     16     1 x 100   1.56       -        -   16.29
    aws-g6e*              AWS g6e.48xlarge                                   8 x l40s          PCIe          24     16     4 x 100   6.25       -        -   30.13
    aws-g7e*              AWS g7e.48xlarge                                   8 x rtx-pro-6000  PCIe          48     22     4 x 400     25       -        -   33.14
    aws-p3*               AWS p3.16xlarge                                    8 x v100-sxm-16   mesh          20    120      1 x 25  0.391       -        -  24.48*
    aws-p3dn*             AWS p3dn.24xlarge                                  8 x v100-sxm-32   mesh          20    120     1 x 100   1.56       -        -  31.21*
    aws-p4d               AWS p4d.24xlarge                                   8 x a100-sxm-40   NVSwitch     240    240     4 x 100   6.25       -        -   21.96
    aws-p4de              AWS p4de.24xlarge                                  8 x a100-sxm-80   NVSwitch     240    240     4 x 100   6.25       -        -   27.45
    aws-p5                AWS p5.48xlarge                                    8 x h100-sxm      NVSwitch   370.8  370.8    32 x 100     50       -        -   55.04
    aws-p5en              AWS p5en.48xlarge                                  8 x h200-sxm      NVSwitch   370.8  370.8    16 x 200     50       -        -   63.30
    aws-p6-b200           AWS p6-b200.48xlarge                               8 x b200          NVSwitch   721.8  721.8     8 x 400     50       -        -     114
    aws-p6-b300*          AWS p6-b300.48xlarge                               8 x b300          NVSwitch   721.8  721.8    16 x 400    100       -        -     142
    aws-trn1*             AWS trn1.32xlarge                                  16 x trainium1    torus       76.8  307.2     8 x 100   6.25       -        -  21.50*
    aws-trn2*             AWS trn2.48xlarge                                  16 x trainium2    torus        128    512    16 x 200     25       -        -       -
    azure-nc-a100-v4      Azure NC96ads A100 v4                              4 x a100-pcie-80  bridges      240     16           -      -       -        -   14.69
    azure-nd-a100-v4      Azure ND A100 v4 (ND96asr)                         8 x a100-sxm-40   NVSwitch     240    240     8 x 200     25       -        -   27.20
    azure-nd-gb200-v6*    Azure ND GB200 v6 (ND128isr), one tray             4 x gb200         NVSwitch   721.8  721.8     4 x 400     50       -        -     114
    azure-nd-h100-v5      Azure ND H100 v5 (ND96isr)                         8 x h100-sxm      NVSwitch   370.8  370.8     8 x 400     50       -        -   98.32
    azure-nd-mi300x-v5*   Azure ND MI300X v5 (ND96isr)                       8 x mi300x        mesh          48    336     8 x 400     50       -        -   48.00
    azure-ndv2*           Azure NDv2 (ND40rs_v2)                             8 x v100-sxm-32   mesh          20    120     1 x 100   1.56       -        -  22.03*
    dgx-1-p100*           NVIDIA DGX-1 (P100)                                8 x p100-sxm      mesh          18     72     4 x 100   6.25   3.20*   129000       -
    dgx-1-v100*           NVIDIA DGX-1 (V100 16 GB)                          8 x v100-sxm-16   mesh          20    120     4 x 100   6.25   3.50*  149000*       -
    dgx-1-v100-32*        NVIDIA DGX-1 (V100 32 GB)                          8 x v100-sxm-32   mesh          20    120     4 x 100   6.25   3.50*        -       -
    dgx-2*                NVIDIA DGX-2                                       16 x v100-sxm-32  NVSwitch     120    120     8 x 100   6.25   10.00   399000       -
    dgx-a100              NVIDIA DGX A100 640GB                              8 x a100-sxm-80   NVSwitch     240    240     8 x 200     25    6.50        -       -
    dgx-a100-320          NVIDIA DGX A100 320GB                              8 x a100-sxm-40   NVSwitch     240    240     8 x 200     25    6.50   199000       -
    dgx-b200              NVIDIA DGX B200                                    8 x b200          NVSwitch   721.8  721.8     8 x 400     50   14.30   515410       -
    dgx-b300*             NVIDIA DGX B300                                    8 x b300          NVSwitch   721.8  721.8     8 x 800    100  14.00*        -       -
    dgx-h100              NVIDIA DGX H100                                    8 x h100-sxm      NVSwitch   370.8  370.8     8 x 400     50   10.20  400000*       -
    dgx-h200*             NVIDIA DGX H200                                    8 x h200-sxm      NVSwitch   370.8  370.8     8 x 400     50   10.20        -       -
    gb200-nvl72*          NVIDIA GB200 NVL72                                 72 x gb200        NVSwitch   721.8  721.8    72 x 400     50     120  3000000    1152
    gb300-nvl72*          NVIDIA GB300 NVL72                                 72 x gb300        NVSwitch   721.8  721.8    72 x 800    100     142  3500000    1296
    gcp-a2-high           GCP a2-highgpu-8g                                  8 x a100-sxm-40   NVSwitch     240    240     1 x 100   1.56       -        -   29.38
    gcp-a3-high           GCP a3-highgpu-8g                                  8 x h100-sxm      NVSwitch   370.8  370.8     4 x 200   12.5       -        -   88.49
    gcp-a3-mega           GCP a3-megagpu-8g                                  8 x h100-sxm      NVSwitch   370.8  370.8     8 x 200     25       -        -       -
    gcp-a3-ultra          GCP a3-ultragpu-8g                                 8 x h200-sxm      NVSwitch   370.8  370.8     8 x 400     50       -        -   84.81
    gcp-a4-high           GCP a4-highgpu-8g                                  8 x b200          NVSwitch   721.8  721.8     8 x 400     50       -        -       -
    gcp-tpu-v5p-256*      Google TPU v5p, slice of 256                       256 x tpu-v5p     torus        120    480    64 x 200   6.25       -        -    1075
    gcp-tpu-v6e-256*      Google TPU v6e, pod of 256                         256 x tpu-v6e     torus         80    320   128 x 200   12.5       -        -     691
    lenovo-sr675v3*       Lenovo ThinkSystem SR675 V3, 8 x H100              8 x h100-pcie     bridges    247.2     16           -      -       -   833806       -
    oci-gpu4              OCI BM.GPU4.8                                      8 x a100-sxm-40   NVSwitch     240    240    16 x 100     25       -        -  24.40*
    oci-h100              OCI BM.GPU.H100.8                                  8 x h100-sxm      NVSwitch   370.8  370.8    16 x 200     50       -        -   80.00
    server-4xl40s*        Server, 4 x L40S at 2 CPUs                         4 x l40s          PCIe          24     16     1 x 100   3.12   2.00*   45000*       -
    server-8xgaudi3*      Server, 8 x Gaudi 3 (HLS-3)                        8 x gaudi3        mesh          60    420    24 x 200  56.71       -        -       -
    server-8xl40s*        Server, 8 x L40S behind PCIe switches              8 x l40s          PCIe          24     16     4 x 200   12.5   4.00*   85000*       -
    server-8xmi325x*      Server, 8 x MI325X                                 8 x mi325x        mesh          48    336     8 x 400     50       -        -   15.60
    server-8xrtx4090*     Server, 8 x GeForce RTX 4090 behind PCIe switches  8 x rtx4090       PCIe          24      6     1 x 100   1.56   4.50*   35000*       -
    server-8xrtxpro6000*  Server, 8 x RTX PRO 6000 behind PCIe 5 switches    8 x rtx-pro-6000  PCIe          48     16     1 x 400      4   6.50*  100000*       -
    workstation-4xa6000*  Workstation, 4 x RTX A6000 with 2 bridges          4 x rtx-a6000     bridges       48     24           -      -   1.60*   30000*       -
    pair: between two GPUs of a node; node: in the ring over all of them (busbw of a long all-reduce);
    out: a GPU's share of the NICs; all in GB/s in one direction
    kW, USD, USD/h: of a node, dated in configs/systems
    * a number in its file has no checked source (unverified: true); predictions that use it say so

    $ stepsim list models
    name                       parameters  layers  hidden  heads  kv heads   vocab  sequence  experts
    -------------------------------------------------------------------------------------------------
    apertus-8b                     8.05 B      32    4096     32         8  131072      4096        0
    bamba-9b                       9.78 B      64    4096     32         8  128256      4096        0
    bart-base                       139 M      12     768     12        12   50265      1024        0
    bart-large                      406 M      24    1024     16        16   50265      1024        0
    bert-base                       110 M      12     768     12        12   30522       512        0
    bert-large                      336 M      24    1024     16        16   30522       512        0
    bloom-176b                      176 B      70   14336    112       112  250880      2048        0
    bloom-7b1                      7.07 B      30    4096     32        32  250880      2048        0
    chatglm3-6b                    6.24 B      28    4096     32         2   65024      4096        0
    command-r                      35.0 B      40    8192     64        64  256000      4096        0
    dbrx                            132 B      40    6144     48         8  100352      4096       16
    deepseek-moe-16b               16.4 B      28    2048     16        16  102400      4096       64
    deepseek-r1                     671 B      61    7168    128       128  129280      4096      256
    deepseek-v2                     236 B      60    5120    128       128  102400      4096      160
    deepseek-v2-lite               15.7 B      27    2048     16        16  102400      4096       64
    deepseek-v3                     671 B      61    7168    128       128  129280      4096      256
    deepseek-v3.1                   671 B      61    7168    128       128  129280      4096      256
    deepseek-v3.2                   671 B      61    7168    128       128  129280      4096      256
    dinov2-base                    86.6 M      12     768     12        12       1      1370        0
    dinov2-giant                   1.14 B      40    1536     24        24       1      1370        0
    dit-b-4                         130 M      12     768     12        12       1        64        0
    dit-l-2                         458 M      24    1024     16        16       1       256        0
    dit-xl-2                        675 M      28    1152     16        16       1       256        0
    dit-xl-2-512                    676 M      28    1152     16        16       1      1024        0
    dots.llm1                       143 B      62    4096     32        32  152064      4096      128
    electra-base                    109 M      12     768     12        12   30522       512        0
    ernie-4.5-0.3b                  361 M      18    1024     16         2  103424      4096        0
    ernie-4.5-21b-a3b              21.8 B      28    2560     20         4  103424      4096       64
    esm2-650m                       651 M      33    1280     20        20      33      1026        0
    exaone-4.0-32b                 32.0 B      64    5120     40         8  102400      4096        0
    falcon-40b                     41.3 B      60    8192    128         8   65024      2048        0
    falcon-7b                      6.92 B      32    4544     71         1   65024      2048        0
    falcon-h1-7b                   7.59 B      88    3072     12         2  130048      8192        0
    flan-t5-base                    248 M      24     768     12        12   32128       114        0
    flan-t5-large                   783 M      48    1024     16        16   32128       114        0
    flan-t5-small                  77.0 M      16     512      6         6   32128       114        0
    flan-t5-xl                     2.85 B      48    2048     32        32   32128       114        0
    flan-t5-xxl                    11.1 B      48    4096     64        64   32128       114        0
    gemma-2b                       2.51 B      18    2048      8         1  256000      4096        0
    gemma-7b                       8.54 B      28    3072     16        16  256000      4096        0
    gemma2-27b                     27.2 B      46    4608     32        16  256000      4096        0
    gemma2-2b                      2.61 B      26    2304      8         4  256000      4096        0
    gemma2-9b                      9.24 B      42    3584     16         8  256000      4096        0
    gemma3-12b                     11.8 B      48    3840     16         8  262208      4096        0
    gemma3-1b                      1.00 B      26    1152      4         1  262144      4096        0
    gemma3-27b                     27.0 B      62    5376     32        16  262208      4096        0
    gemma3-4b                      3.88 B      34    2560      8         4  262208      4096        0
    glm-4-9b                       9.40 B      40    4096     32         2  151552      4096        0
    glm-4.5                         353 B      92    5120     96         8  151552      4096      160
    glm-4.5-air                     107 B      46    4096     96         8  151552      4096      128
    glm-4.6                         353 B      92    5120     96         8  151552      4096      160
    glm-4.7-flash                  29.9 B      47    2048     20        20  154880      4096       64
    gpt-j-6b                       6.05 B      28    4096     16        16   50400      2048        0
    gpt-neox-20b                   20.6 B      44    6144     64        64   50432      2048        0
    gpt-oss-120b                    117 B      36    2880     64         8  201088      4096      128
    gpt-oss-20b                    20.9 B      24    2880     64         8  201088      4096       32
    gpt1                            117 M      12     768     12        12   40478       512        0
    gpt2-1.5b                      1.56 B      48    1600     25        25   50257      1024        0
    gpt2-124m                       124 M      12     768     12        12   50257      1024        0
    gpt2-350m                       355 M      24    1024     16        16   50257      1024        0
    gpt2-774m                       774 M      36    1280     20        20   50257      1024        0
    gpt3-1.3b                      1.32 B      24    2048     16        16   50257      2048        0
    gpt3-125m                       125 M      12     768     12        12   50257      2048        0
    gpt3-13b                       12.9 B      40    5120     40        40   50257      2048        0
    gpt3-175b                       175 B      96   12288     96        96   50257      2048        0
    gpt3-2.7b                      2.65 B      32    2560     32        32   50257      2048        0
    gpt3-350m                       356 M      24    1024     16        16   50257      2048        0
    gpt3-6.7b                      6.66 B      32    4096     32        32   50257      2048        0
    gpt3-760m                       760 M      24    1536     16        16   50257      2048        0
    granite3-8b                    8.17 B      40    4096     32         8   49155      4096        0
    granite4-h-small               32.2 B      80    4096     32         8  100352      4096       72
    grok-1                          316 B      64    6144     48         8  131072      4096        8
    hunyuan-a13b                   80.4 B      32    4096     32         8  128167      4096       64
    hy3-295b-a21b                   295 B      80    4096     64         8  120832      4096      192
    internlm2-7b                   7.74 B      32    4096     32         8   92544      4096        0
    iquest-coder-40b               39.8 B      80    5120     40         8   76800      4096        0
    jais2-8b                       8.09 B      32    3328     26        26  150272      4096        0
    jamba-v0.1                     51.5 B      64    4096     32         8   65536      4096       16
    kimi-k2                        1.03 T      61    7168     64        64  163840      4096      384
    kimi-linear-48b-a3b            49.1 B      54    2304     32        32  163840      8192      256
    lfm2-1.2b                      1.17 B      32    2048     32         8   65536      8192        0
    lfm2-8b-a1b                    8.34 B      48    2048     32         8   65536      8192       32
    ling-lite                      16.8 B      28    2048     16         4  126464      4096       64
    llama2-13b                     13.0 B      40    5120     40        40   32000      4096        0
    llama2-70b                     69.0 B      80    8192     64         8   32000      4096        0
    llama2-7b                      6.74 B      32    4096     32        32   32000      4096        0
    llama3-405b                     406 B     126   16384    128         8  128256      8192        0
    llama3-70b                     70.6 B      80    8192     64         8  128256      8192        0
    llama3-8b                      8.03 B      32    4096     32         8  128256      8192        0
    llama3.1-405b                   406 B     126   16384    128         8  128256      4096        0
    llama3.1-70b                   70.6 B      80    8192     64         8  128256      4096        0
    llama3.1-8b                    8.03 B      32    4096     32         8  128256      4096        0
    llama3.2-1b                    1.24 B      16    2048     32         8  128256      4096        0
    llama3.2-3b                    3.21 B      28    3072     24         8  128256      4096        0
    llama3.3-70b                   70.6 B      80    8192     64         8  128256      4096        0
    llama4-maverick                 401 B      48    5120     40         8  202048      4096      128
    llama4-scout                    108 B      48    5120     40         8  202048      4096       16
    mamba2-1.3b                    1.34 B      48    2048     64        64   50288      2048        0
    mamba2-130m                     129 M      24     768     24        24   50288      2048        0
    mamba2-2.7b                    2.70 B      64    2560     80        80   50288      2048        0
    mamba2-370m                     368 M      48    1024     32        32   50288      2048        0
    mamba2-780m                     780 M      48    1536     48        48   50288      2048        0
    mellum2-12b-a2.5b              12.1 B      28    2304     32         4   98304      4096       64
    minicpm3-4b                    4.07 B      62    2560     40        40   73448      4096        0
    minimax-m2                      229 B      62    3072     48         8  200064      4096      256
    minimax-text-01                 456 B     160    6144     64         8  200064      8192       32
    mistral-7b                     7.24 B      32    4096     32         8   32000      4096        0
    mistral-nemo-12b               12.2 B      40    5120     32         8  131072      4096        0
    mistral-small-4-119b            119 B      36    4096     32        32  131072      4096      128
    mixtral-8x22b                   141 B      56    6144     48         8   32000     65536        8
    mixtral-8x7b                   46.7 B      32    4096     32         8   32000     32768        8
    modernbert-base                 150 M      22     768     12        12   50368      4096        0
    modernbert-large                396 M      28    1024     16        16   50368      4096        0
    moonlight-16b-a3b              16.0 B      27    2048     16        16  163840      8192       64
    mpt-125m                        125 M      12     768     12        12   50368      2048        0
    mpt-13b                        12.9 B      40    5120     40        40   50368      2048        0
    mpt-1b                         1.32 B      24    2048     16        16   50368      2048        0
    mpt-30b                        30.0 B      48    7168     56        56   50368      2048        0
    mpt-350m                        356 M      24    1024     16        16   50368      2048        0
    mpt-3b                         2.65 B      32    2560     20        20   50368      2048        0
    mpt-70b                        64.9 B      80    8192     64        64   50368      2048        0
    mpt-760m                        760 M      24    1536     12        12   50368      2048        0
    mpt-7b                         6.66 B      32    4096     32        32   50368      2048        0
    mt5-base                        582 M      24     768     12        12  250112       114        0
    nanochat-d20                    561 M      20    1280     10        10   65536      2048        0
    nemotron-h-47b                 46.8 B      98    8192     64         8  131072      8192        0
    nemotron-h-4b                  4.49 B      52    3072     32         8  131072      8192        0
    nemotron-h-56b                 56.3 B     118    8192     64         8  131072      8192        0
    nemotron-h-8b                  8.10 B      52    4096     32         8  131072      8192        0
    nemotron-nano-12b-v2           12.3 B      62    5120     40         8  131072      8192        0
    nemotron-nano-9b-v2            8.89 B      56    4480     40         8  131072      8192        0
    nemotron3-nano-30b-a3b         31.6 B      52    2688     32         2  131072      8192      128
    nemotron3-super-120b-a12b       121 B      88    4096     32         2  131072      8192      512
    nemotron4-340b                  341 B      96   18432     96         8  256000      4096        0
    nllb-200-600m                   617 M      24    1024     16        16  256206      1024        0
    olmo2-13b                      13.7 B      40    5120     40        40  100352      4096        0
    olmo2-7b                       7.30 B      32    4096     32        32  100352      4096        0
    olmo3-32b                      32.2 B      64    5120     40         8  100278      4096        0
    olmo3-7b                       7.30 B      32    4096     32        32  100278      4096        0
    olmoe-1b-7b                    6.92 B      16    2048     16        16   50304      4096       64
    opt-1.3b                       1.32 B      24    2048     32        32   50272      2048        0
    opt-30b                        30.0 B      48    7168     56        56   50272      2048        0
    phi-2                          2.78 B      32    2560     32        32   51200      2048        0
    phi3-mini                      3.82 B      32    3072     32        32   32064      4096        0
    phi4                           14.7 B      40    5120     40        10  100352      4096        0
    pythia-12b                     11.8 B      36    5120     40        40   50688      2048        0
    pythia-6.9b                    6.86 B      32    4096     32        32   50432      2048        0
    qwen1.5-moe-a2.7b              14.3 B      24    2048     16        16  151936      4096       60
    qwen2.5-0.5b                    494 M      24     896     14         2  151936      4096        0
    qwen2.5-1.5b                   1.54 B      28    1536     12         2  151936      4096        0
    qwen2.5-14b                    14.8 B      48    5120     40         8  152064      4096        0
    qwen2.5-32b                    32.8 B      64    5120     40         8  152064      4096        0
    qwen2.5-3b                     3.09 B      36    2048     16         2  151936      4096        0
    qwen2.5-72b                    72.7 B      80    8192     64         8  152064      4096        0
    qwen2.5-7b                     7.62 B      28    3584     28         4  152064      4096        0
    qwen3-0.6b                      596 M      28    1024     16         8  151936      4096        0
    qwen3-1.7b                     1.72 B      28    2048     16         8  151936      4096        0
    qwen3-14b                      14.8 B      40    5120     40         8  151936      4096        0
    qwen3-235b-a22b                 235 B      94    4096     64         4  151936      4096      128
    qwen3-30b-a3b                  30.5 B      48    2048     32         4  151936      4096      128
    qwen3-32b                      32.8 B      64    5120     64         8  151936      4096        0
    qwen3-4b                       4.02 B      36    2560     32         8  151936      4096        0
    qwen3-8b                       8.19 B      36    4096     32         8  151936      4096        0
    qwen3-next-80b-a3b             79.7 B      96    2048     16         2  151936      8192      512
    qwen3.5-0.8b                    752 M      48    1024      8         2  248320      8192        0
    qwen3.5-122b-a10b               122 B      96    3072     32         2  248320      8192      256
    qwen3.5-27b                    26.9 B     128    5120     24         4  248320      8192        0
    qwen3.5-2b                     1.88 B      48    2048      8         2  248320      8192        0
    qwen3.5-35b-a3b                34.7 B      80    2048     16         2  248320      8192      256
    qwen3.5-397b-a17b               396 B     120    4096     32         2  248320      8192      512
    qwen3.5-4b                     4.21 B      64    2560     16         4  248320      8192        0
    qwen3.5-9b                     8.95 B      64    4096     16         4  248320      8192        0
    resnet101                      44.5 M      33    2048     12        12   50257         1        0
    resnet152                      60.2 M      50    2048     12        12   50257         1        0
    resnet18                       11.7 M       8     512     12        12   50257         1        0
    resnet34                       21.8 M      16     512     12        12   50257         1        0
    resnet50                       25.6 M      16    2048     12        12   50257         1        0
    roberta-base                    125 M      12     768     12        12   50265       512        0
    seed-oss-36b                   36.2 B      64    5120     80         8  155136      4096        0
    smollm3-3b                     3.08 B      36    2048     16         4  128256      4096        0
    solar-open-100b                 103 B      48    4096     64         8  196608      4096      128
    stablelm-3b                    2.80 B      32    2560     32        32   50304      4096        0
    starcoder-15b                  15.5 B      40    6144     48         1   49152      4096        0
    starcoder2-3b                  3.03 B      30    3072     24         2   49152      4096        0
    starcoder2-7b                  7.17 B      32    4608     36         4   49152      4096        0
    t5-11b                         11.3 B      48    1024    128       128   32128       114        0
    t5-3b                          2.85 B      48    1024     32        32   32128       114        0
    t5-base                         223 M      24     768     12        12   32128       114        0
    t5-large                        738 M      48    1024     16        16   32128       114        0
    t5-small                       60.5 M      12     512      8         8   32128       114        0
    tinyllama-1.1b                 1.10 B      22    2048     32         4   32000      2048        0
    trinity-mini                   26.1 B      32    2048     32         4  200192      8192      128
    vit-22b                        21.8 B      48    6144     48        48       1       257        0
    vit-b-16                       86.6 M      12     768     12        12       1       197        0
    vit-g-14                       1.01 B      40    1408     16        16       1       257        0
    vit-h-14                        632 M      32    1280     16        16       1       257        0
    vit-l-16                        304 M      24    1024     16        16       1       197        0
    whisper-base                   72.6 M      12     512      8         8   51865       448        0
    whisper-large-v2               1.54 B      64    1280     20        20   51865       448        0
    whisper-large-v3               1.54 B      64    1280     20        20   51866       448        0
    whisper-large-v3-turbo          809 M      36    1280     20        20   51866       448        0
    whisper-medium                  764 M      48    1024     16        16   51865       448        0
    whisper-small                   242 M      24     768     12        12   51865       448        0
    whisper-tiny                   37.8 M       8     384      6         6   51865       448        0
    youtu-llm-2b                   1.96 B      32    2048     16        16  128256      4096        0

    $ stepsim list stacks
    name                     strategy  compute  weights  on the wire  fused  overlap  other names
    --------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------
    alpa                     ddp       bf16     bf16     bf16         yes    yes      Alpa
    composer-fsdp            fsdp      bf16     fp32     fp32         no     yes      llm-foundry; Composer; MosaicML
    deepspeed                ddp       bf16     bf16     bf16         no     yes      DeepSpeed; DeepSpeed-Chat; Colossal-AI; Hugging Face ... DeepSpeed; accelerate ... DeepSpeed; Lightning ... DeepSpeed; HF Trainer ... DeepSpeed; TRL ... DeepSpeed; Axolotl ... DeepSpeed; LLaMA-Factory ... DeepSpeed; HF Trainer ... Liger ... DeepSpeed; TRL ... Liger ... DeepSpeed; Axolotl ... Liger ... DeepSpeed; LLaMA-Factory ... Liger ... DeepSpeed; HF Trainer ... DeepSpeed ... Liger; TRL ... DeepSpeed ... Liger; Axolotl ... DeepSpeed ... Liger; LLaMA-Factory ... DeepSpeed ... Liger; ms-swift ... Liger ... DeepSpeed; swift ... Liger ... DeepSpeed; ms-swift ... DeepSpeed ... Liger; swift ... DeepSpeed ... Liger; ms-swift ... DeepSpeed; swift ... DeepSpeed; ms-swift ... ZeRO; swift ... ZeRO; xtuner ... DeepSpeed; xtuner ... ZeRO; Open-Instruct; ArcticTraining; ALST; Hugging Face ... ZeRO; accelerate ... ZeRO; HF Trainer ... ZeRO; TRL ... ZeRO; Axolotl ... ZeRO; LLaMA-Factory ... ZeRO; MiCS; BMTrain; OpenRLHF; LMFlow; Open-Sora
    deepspeed-2021           fsdp      bf16     bf16     bf16         no     yes      DeepSpeed 2021
    gpt-neox                 ddp       bf16     bf16     fp32         yes    no       GPT-NeoX
    habana-lazy              ddp       bf16     fp32     fp32         yes    yes      optimum-habana
    habana-megatron          ddp       bf16     bf16     fp32         yes    no       Megatron-DeepSpeed (HabanaAI)
    internlm                 ddp       bf16     bf16     bf16         yes    yes      InternLM; InternEvo; InternTrain
    jax-pax                  ddp       bf16     bf16     bf16         yes    yes      JAX PAX; PAX; PaxML; Praxis
    llm.c                    ddp       bf16     fp32     fp32         yes    yes      LLM.Q; llmq
    maxtext                  ddp       bf16     fp32     bf16         yes    yes      MaxText; JAX MaxText; levanter; JAX; EasyLM; T5X; Flax; AXLearn; MaxDiffusion; JAX-Toolbox; NeuronX; neuronx-distributed; optimum-neuron; TensorFlow ... XLA; TF2 ... XLA; torchprime; PyTorch/XLA; torch_xla; TorchAcc
    megatron-core            ddp       bf16     bf16     bf16         yes    yes      Megatron-Core; MCore; Megatron-Bridge; Megatron-Core ... TE loss; NeMo; NeMo-Aligner; NeMo-RL; BioNeMo; NeMo 25; NeMo 26; Primus; AMD Primus; Transformer Engine, eager; HAI-LLM; Fast-LLM
    megatron-deepspeed       ddp       bf16     bf16     fp32         yes    no       Megatron-DeepSpeed; Megatron(-DeepSpeed); Megatron ... DeepSpeed
    megatron-deepspeed-bf16  ddp       bf16     bf16     fp32         yes    no       -
    megatron-lm              ddp       bf16     bf16     fp32         yes    no       Megatron-LM; Megatron; Megatron-LM core; Megatron-Core (FlagPerf); Megatron-Core (FlagScale); FlagScale; Megatron-SWIFT; ms-swift ... Megatron; swift ... Megatron; SimuMax; OneFlow GPT; OneFlow; LiBai; Megatron-LLaMA; Megatron-LLM; Pai-Megatron-Patch; MegaScale; MegaBlocks; FastMoE; Galvatron; Hetu-Galvatron; Paddle; PaddleNLP; PaddlePaddle; PaddleFormers
    nanotron                 ddp       bf16     bf16     fp32         no     no       -
    pytorch-ddp              ddp       bf16     fp32     fp32         yes    yes      PyTorch; PyTorch DDP; PyTorch DDP ... compile; flash-attention GPT; nanoGPT; nanochat; modded-nanogpt; PyTorch 2. ... compile
    pytorch-ddp-eager        ddp       bf16     fp32     fp32         no     yes      NGC PyTorch; nanoGPT ... eager; PyTorch DDP ... eager; PyTorch ... eager; HF Trainer; TRL; SFTTrainer; Axolotl; LLaMA-Factory; Hugging Face; accelerate; HF Transformers; Transformers; HF Trainer ... Triton loss; HF Trainer ... Liger; TRL ... Liger; Axolotl ... Liger; LLaMA-Factory ... Liger; Lightning; PyTorch Lightning; Lightning Fabric; Fabric; ms-swift; swift; xtuner; PyTorch 2.; picotron; Ray Train; Horovod; fairseq; Tutel; timm; open_clip; OpenFlamingo; detectron2; MMEngine; ESPnet; diffusers; SimpleTuner; Tevatron
    pytorch-ddp-model        ddp       bf16     fp32     fp32         yes    yes      PyTorch DDP ... compiled model; PyTorch ... compiled model; HF Trainer ... compile; TRL ... compile; Hugging Face ... compile; HF Transformers ... compile; Transformers ... compile
    pytorch-fsdp             fsdp      bf16     fp32     fp32         yes    yes      torchtitan; torchtitan 2024 ... compile; FSDP2; PyTorch FSDP2; NeMo Automodel; KempnerForge; OLMo; OLMo-core; litgpt; prime-rl ... compile; torchtitan 2026 ... compile; prime-rl ... Mega MoE ... compile; torchtune ... compile; FSDP ... compile; PyTorch FSDP ... compile; llm-baselines; danastar; FSDP1 ... compile; PyTorch FSDP1 ... compile; fms-fsdp; TinyLlama; PyTorch ... FSDP ... compile; HF Trainer ... FSDP ... compile; HF Trainer ... compile ... FSDP; TRL ... FSDP ... compile; TRL ... compile ... FSDP; Axolotl ... FSDP ... compile; Axolotl ... compile ... FSDP; LLaMA-Factory ... FSDP ... compile; LLaMA-Factory ... compile ... FSDP; Hugging Face ... FSDP ... compile; Hugging Face ... compile ... FSDP; HF Transformers ... FSDP ... compile; HF Transformers ... compile ... FSDP; accelerate ... FSDP ... compile; accelerate ... compile ... FSDP; Lightning ... FSDP ... compile; Lightning ... compile ... FSDP; FMS; foundation-model-stack; Lingua; Meta Lingua; Unsloth
    pytorch-fsdp-eager       fsdp      bf16     fp32     fp32         no     yes      torchtitan ... eager; prime-rl ... eager; torchtitan ... eager ... compiled loss; FSDP2 ... eager; PyTorch FSDP2 ... eager; KempnerForge ... eager; litgpt ... eager; torchtune; FSDP; PyTorch FSDP; PyTorch ... FSDP; PyTorch FSDP ... eager; FSDP1; PyTorch FSDP1; PyTorch FSDP1 ... eager; fms-fsdp ... eager; ATorch; Modalities; HF Trainer ... FSDP; TRL ... FSDP; Axolotl ... FSDP; LLaMA-Factory ... FSDP; Hugging Face ... FSDP; accelerate ... FSDP; Lightning ... FSDP; HF Trainer ... Triton loss ... FSDP; HF Trainer ... Liger ... FSDP; TRL ... Liger ... FSDP; Axolotl ... Liger ... FSDP; LLaMA-Factory ... Liger ... FSDP; FairScale; metaseq; llama-recipes; Llama cookbook; YaFSDP; ms-swift ... Liger ... FSDP; swift ... Liger ... FSDP; ms-swift ... FSDP ... Liger; swift ... FSDP ... Liger; ms-swift ... FSDP; swift ... FSDP; HSDP; VeOmni; veScale; verl; fairseq2; OpenLM; prime-rl; prime; OpenDiLoCo; SageMaker; SageMaker SMP; SMP; SageMaker model parallel
    tensorflow               ddp       bf16     fp32     fp32         no     yes      TensorFlow 2; TF2
    other names: whatever the case, - and _; "A ... B" begins with A and has B further on.
    train.stack and tables of measurements take them (sources in configs/stacks)

    $ stepsim list fabrics
    name               network between hosts                               rings    at most  all to all   hop LL  hop, small  hop, large  LL128  below 16 MiB  above
    ----------------------------------------------------------------------------------------------------------------------------------------------------------------
    efa                EFA of AWS                                           85 %          -        70 %  15.0 us     75.0 us     75.0 us    yes          70 %   35 %
    efa-p4d            EFA of AWS to P4d, by send and receive               66 %          -        70 %  15.0 us     75.0 us      700 us     no          70 %   35 %
    efa-shared         EFA of AWS in one shared cluster (one source)       100 %          -        70 %   350 us      350 us      350 us    yes          50 %   30 %
    ethernet-unknown   Ethernet of which nothing is known, taken as RoCE    90 %          -        90 %  2.70 us     14.0 us     14.0 us    yes          90 %   40 %
    infiniband         InfiniBand (HDR, NDR)                                95 %          -        90 %  2.70 us     14.0 us     14.0 us    yes          20 %    8 %
    roce               RoCE (RDMA over Ethernet)                            90 %          -        90 %  2.70 us     14.0 us     14.0 us    yes          50 %   20 %
    slingshot          Slingshot-11 through aws-ofi-nccl                    92 %          -        43 %  2.70 us     25.0 us      155 us     no          80 %   25 %
    slingshot-polaris  Slingshot-11 of Polaris (one source)               73.5 %          -        43 %  2.70 us     25.0 us      155 us     no          45 %   20 %
    tcp                TCP sockets                                          90 %  3.30 GB/s        90 %  30.0 us     60.0 us      300 us     no          60 %   40 %
    tcpx               GPUDirect-TCPX of Google Cloud (A3 High)             51 %          -        90 %  55.0 us      600 us      600 us     no          80 %   35 %
    tcpxo              GPUDirect-TCPXO of Google Cloud (A3 Mega)            94 %          -        90 %  55.0 us     37.0 us     60.0 us     no          80 %   35 %
    rings, all to all: share of its NICs' line rate that a host reaches; at most: its limit with any
      NICs;
    hop: latency from host to host in a ring with NCCL's LL, and with Simple for small and large blocks;
    below, above: relative uncertainty (one standard deviation) of a collective. Sources in
      configs/fabrics

    $ stepsim list parameters | head -n 4 | tr -s ' -' | cut -c 1-90
    of parameter value meaning source
    -
    a10 gemm_share* 0.669 of the matrix rate that large products reach 0.84 of the best produc
    a10 memory_share* 0.871 of the memory bandwidth that streaming kernels reach not measured 
    $ stepsim list parameters | grep '^model: ' | tr -s ' ' | head -n 2 | cut -c 1-90
    model: cost collective_compute_share* 0.1 share of the compute units that a running collec
    model: cost collective_memory_passes 2.0 memory traffic of a collective, over the bytes th
