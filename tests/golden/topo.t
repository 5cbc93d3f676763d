The links of dumped machines, and what is refused. (What this machine has differs from machine to machine: here only that it is shown.)

    $ stepsim topo --nccl-xml $ROOT/tests/golden/topo/switch.xml
    switch.xml: 2 GPUs, 1 NIC; source: nccl xml
          GPU0      GPU1      NIC0     NUMA  CPUs
    ----------------------------------------------
    GPU0  X         NV18 371  PIX 48      0  0-15
    GPU1  NV18 371  X         SYS ~22     1  16-31
    NIC0  PIX 48    SYS ~22   X           0  0-15
    Each cell: link, and GB/s in one direction for a transfer between that pair alone.
      NV#   that many NVLinks or xGMI links (behind an NVLink switch: all of the GPU's)
      PIX   one PCIe switch at most between them
      SYS   between NUMA nodes or sockets
      ~     a default: no source says how fast this machine's slowest link on the way is
    Fabric: nvswitch (an NVLink switch joins all GPUs)
    A datasheet counts both directions: 900 GB/s are 18 links x 2 directions; one direction is 450, of
      which 371 carry data.
    Rings: one direction, every member at once; a long all-reduce's busbw in nccl-tests tends to this.
    GPUs       ring, GB/s  datasheet  the slowest link
    ---------------------------------------------------------------------------------------
    both GPUs         371        450  NVLink between GPU0 and NVS0, 371 GB/s; NVLS possible
    GPU   name  memory  PCI           PCIe       links          GB/s  datasheet
    ---------------------------------------------------------------------------
    GPU0                0000:18:00.0  gen 5 x16  18 x NVLink 4   371        450
    GPU1                0000:98:00.0  gen 5 x16  18 x NVLink 4   371        450
    NIC   name    PCI           kind        GB/s
    --------------------------------------------
    NIC0  mlx5_0  0000:19:00.0  InfiniBand    50
    CPU   NUMA  package  memory  CPUs   model
    ----------------------------------------------------------------
    CPU0     0                   0-15   Intel Xeon (Sapphire Rapids)
    CPU1     1                   16-31  Intel Xeon (Sapphire Rapids)
    warning: GPU1 reaches no NIC without crossing to another CPU socket or NUMA node (nearest: NIC0
      mlx5_0): 22 GB/s over that link instead of 48 from the same one

    $ stepsim topo --smi $ROOT/tests/golden/topo/bridges.txt
    bridges.txt: 4 GPUs, 1 NIC; source: nvidia-smi topo
          GPU0     GPU1     GPU2     GPU3     NIC0     NUMA  CPUs
    --------------------------------------------------------------
    GPU0  X        NV4 ~48  SYS ~10  SYS ~10  PIX ~12     0  0-15
    GPU1  NV4 ~48  X        SYS ~10  SYS ~10  PIX ~12     0  0-15
    GPU2  SYS ~10  SYS ~10  X        NV4 ~48  SYS ~10     1  16-31
    GPU3  SYS ~10  SYS ~10  NV4 ~48  X        SYS ~10     1  16-31
    NIC0  PIX ~12  PIX ~12  SYS ~10  SYS ~10  X
    Each cell: link, and GB/s in one direction for a transfer between that pair alone.
      NV#   that many NVLinks or xGMI links (behind an NVLink switch: all of the GPU's)
      PIX   one PCIe switch at most between them
      SYS   between NUMA nodes or sockets
      ~     a default: no source says how fast this machine's slowest link on the way is
    Fabric: bridge (NVLink bridges join pairs of GPUs)
    A datasheet counts both directions: 112 GB/s are 4 links x 2 directions; one direction is 56.2, of
      which ~48 carry data.
    Rings: one direction, every member at once; a long all-reduce's busbw in nccl-tests tends to this.
    GPUs                                     ring, GB/s  datasheet  the slowest link
    ---------------------------------------------------------------------------------------------
    all 4 GPUs                                      ~10          -  socket between CPU0 and CPU1,
                                                                    10.0 GB/s
    each NVLink island of 2: GPU0-1; GPU2-3         ~48       56.2  NVLink between GPU0 and GPU1,
                                                                    48.0 GB/s
    GPU   name  memory  PCI  PCIe  links       GB/s  datasheet
    ----------------------------------------------------------
    GPU0                           4 x NVLink   ~48       56.2
    GPU1                           4 x NVLink   ~48       56.2
    GPU2                           4 x NVLink   ~48       56.2
    GPU3                           4 x NVLink   ~48       56.2
    NIC   name    PCI  kind   GB/s
    ------------------------------
    NIC0  mlx5_0             ~12.5
    CPU   NUMA  package  memory  CPUs   model
    -----------------------------------------
    CPU0     0                   0-15
    CPU1     1                   16-31
    warning: GPU2-3 reach no NIC without crossing to another CPU socket or NUMA node (nearest: NIC0
      mlx5_0): 10 GB/s for all of them over that link instead of 12 from the same one

    $ stepsim topo --smi - < $ROOT/tests/golden/topo/bridges.txt | head -n 1
    standard input: 4 GPUs, 1 NIC; source: nvidia-smi topo

    $ COLUMNS=999 stepsim topo -v --nccl-xml $ROOT/tests/golden/topo/switch.xml | sed -n '/^link/,$p'
    link                          GB/s  datasheet  latency  source
    ------------------------------------------------------------------------------
    HB0   CPU0  local             5000          -      0 s  nccl xml
    PCI0   HB0  PCIe gen 5 x16      48         63  2.50 us  nccl xml
    GPU0  PCI0  PCIe gen 5 x16      48         63  2.50 us  nccl xml
    NIC0  PCI0  PCIe gen 5 x16      48         63  2.50 us  nccl xml
    HB1   CPU1  local             5000          -      0 s  nccl xml
    GPU1   HB1  PCIe gen 5 x16      48         63  2.50 us  nccl xml
    CPU0  CPU1  socket              22          -  2.50 us  nccl xml, rate assumed
    NIC0   NET  network             50         50  4.00 us  nccl xml
    GPU0  NVS0  NVLink gen 4 x18   371        450  1.90 us  nccl xml
    GPU1  NVS0  NVLink gen 4 x18   371        450  1.90 us  nccl xml
    warning: GPU1 reaches no NIC without crossing to another CPU socket or NUMA node (nearest: NIC0 mlx5_0): 22 GB/s over that link instead of 48 from the same one

    $ stepsim topo --nccl-xml $ROOT/tests/golden/topo/switch.xml --json - | tr -s ' \n' ' ' | sed 's/"cpus".*//'
    { "hosts": [ "switch.xml" ], "gpus": [ { "label": "GPU0", "host": "switch.xml", "name": null, "pci": "0000:18:00.0", "numa": 0, "cores": "0-15", "source": "nccl xml", "pcie_gen": 5, "pcie_width": 16, "memory_bytes": null, "pcie_gen_max": null, "pcie_width_max": null, "device": null, "compute_capability": 90, "nvlinks": 18, "peer_to_peer": true, "clock_Hz": null, "clock_max_Hz": null, "power_limit_W": null, "power_default_W": null }, { "label": "GPU1", "host": "switch.xml", "name": null, "pci": "0000:98:00.0", "numa": 1, "cores": "16-31", "source": "nccl xml", "pcie_gen": 5, "pcie_width": 16, "memory_bytes": null, "pcie_gen_max": null, "pcie_width_max": null, "device": null, "compute_capability": 90, "nvlinks": 18, "peer_to_peer": true, "clock_Hz": null, "clock_max_Hz": null, "power_limit_W": null, "power_default_W": null } ], "nics": [ { "label": "NIC0", "host": "switch.xml", "name": "mlx5_0", "pci": "0000:19:00.0", "numa": 0, "cores": "0-15", "source": "nccl xml", "bandwidth_Bps": 50000000000.0, "port": 1, "infiniband": true } ], "matrix": { "labels": [ "GPU0", "GPU1", "NIC0" ], "link": [ [ "X", "NV18", "PIX" ], [ "NV18", "X", "SYS" ], [ "PIX", "SYS", "X" ] ], "bandwidth_Bps": [ [ null, 370800000000.0, 48000000000.0 ], [ 370800000000.0, null, 22000000000.0 ], [ 48000000000.0, 22000000000.0, null ] ] }, "fabric": "nvswitch", "warnings": [ "GPU1 reaches no NIC without crossing to another CPU socket or NUMA node (nearest: NIC0 mlx5_0): 22 GB/s over that link instead of 48 from the same one" ], "source": "nccl xml", 

    $ stepsim topo --nccl-xml $ROOT/tests/golden/topo/switch.xml --dot - | grep -e '--'
    	h0_4 -- h0_6 [color="#999999", penwidth=1];
    	h0_3 -- h0_4 [color="#5b3f8c", penwidth=1, label="PCIe gen 5 x16\n48 GB/s"];
    	h0_0 -- h0_3 [color="#5b3f8c", penwidth=1, label="PCIe gen 5 x16\n48 GB/s"];
    	h0_2 -- h0_3 [color="#5b3f8c", penwidth=1, label="PCIe gen 5 x16\n48 GB/s"];
    	h0_5 -- h0_7 [color="#999999", penwidth=1];
    	h0_1 -- h0_5 [color="#5b3f8c", penwidth=1, label="PCIe gen 5 x16\n48 GB/s"];
    	h0_6 -- h0_7 [color="#b06000", penwidth=1, style=dashed, constraint=false, xlabel="socket\n~22 GB/s"];
    	h0_2 -- h0_8 [color="#1f6fb2", penwidth=1, label="network\n50 GB/s"];
    	h0_9 -- h0_0 [color="#4e7a00", penwidth=7, label="NVLink gen 4 x18\n371 GB/s"];
    	h0_9 -- h0_1 [color="#4e7a00", penwidth=7, label="NVLink gen 4 x18\n371 GB/s"];

    $ stepsim topo --nccl-xml $ROOT/tests/golden/topo/switch.xml --svg picture.svg --json result.json | head -n 1; head -c 40 picture.svg; echo; head -c 2 result.json
    switch.xml: 2 GPUs, 1 NIC; source: nccl xml
    <svg xmlns="http://www.w3.org/2000/svg" 
    {

    $ stepsim topo | grep -c 'source: '
    1

    $ stepsim topo --json - | tr -s ' \n' ' ' | cut -c 1-11
    { "hosts": 

From a pipe and from standard input, with all that hwloc counts and lists:

    $ stepsim topo --hwloc-xml <(cat $ROOT/tests/golden/topo/disk.xml)
    a pipe: 0 GPUs, 0 NICs; source: hwloc xml
    2 hardware threads, 1 NUMA node, 8.00 GiB of memory
    CPU   NUMA  package    memory  CPUs  model
    ------------------------------------------
    CPU0     0           8.00 GiB  0-1
    PCI           what          device     known as  GB/s  NUMA
    -----------------------------------------------------------
    0000:01:00.0  NVMe storage  144d:a80a  nvme0n1   7.88     0

    $ stepsim topo --hwloc-xml - --json - < $ROOT/tests/golden/topo/disk.xml | grep -e '"class"' -e '"threads"' -e '"known_as"'
        "threads": 2,
          "class": "NVMe storage",
          "known_as": "nvme0n1",

    $ stepsim topo --nccl-xml <(cat $ROOT/tests/golden/topo/switch.xml) --smi - < $ROOT/tests/golden/topo/bridges.txt | head -n 1
    standard input: 4 GPUs, 1 NIC; source: nccl xml

Refused, each in one line:

    $ stepsim topo --smi $ROOT/tests/golden/topo/bad.txt
    stepsim: $ROOT/tests/golden/topo/bad.txt:1: no matrix of `nvidia-smi topo -m` here: no line of column names with GPU0 or another GPU
    [2]

    $ stepsim topo --nccl-xml $ROOT/tests/golden/topo/bad.xml
    stepsim: $ROOT/tests/golden/topo/bad.xml:3: busid="zz" is no PCI address (0000:1b:00.0)
    [2]

    $ stepsim topo --hwloc-xml $ROOT/tests/golden/topo/bad.txt
    stepsim: $ROOT/tests/golden/topo/bad.txt:1: not XML: syntax error
    [2]

    $ stepsim topo --smi nowhere.txt
    stepsim: cannot read nowhere.txt: No such file or directory
    [2]

    $ truncate -s 65M large.txt; stepsim topo --smi large.txt
    stepsim: large.txt is larger than 67108864 bytes
    [2]

    $ truncate -s 65M large.txt; stepsim topo --hwloc-xml large.txt
    stepsim: large.txt is larger than 67108864 bytes
    [2]

    $ stepsim topo --smi - --nccl-xml -
    stepsim: only one of --smi, --nccl-xml and --hwloc-xml can be read from standard input
    [2]

    $ stepsim topo --json - --svg -
    stepsim: --json - and --svg - cannot both be standard output
    [2]

    $ stepsim topo --nccl-xml $ROOT/tests/golden/topo/switch.xml --svg no/such/folder/picture.svg > text
    stepsim: cannot write no/such/folder/picture.svg: No such file or directory
    [2]

    $ stepsim topo --trace x.json
    stepsim: this command does not take --trace (known: --json, --smi, --nccl-xml, --hwloc-xml, --dot, --svg, --progress, --quiet, --verbose, --help)
    [2]

    $ stepsim topo extra
    stepsim: unexpected argument 'extra'
    [2]

    $ stepsim predict --smi x
    stepsim: this command does not take --smi
    [2]

    $ stepsim topo --nccl-xlm x
    stepsim: unknown option --nccl-xlm (nearest: --nccl-xml)
    [2]

    $ stepsim topo --smi ''
    stepsim: --smi: expected a path, or - for standard input
    [2]

    $ stepsim topo --help
    usage: stepsim topo [options]
    print the links of this machine as a matrix in GB/s, or those of a dumped machine
    option                effect
    ----------------------------------------------------------------------------------------------------
        --json FILE       write the result as JSON; - is standard output, in place of the table
        --smi FILE        read what `nvidia-smi topo -m` printed on another machine; - is standard input
        --nccl-xml FILE   read another machine's NCCL or RCCL topology file (NCCL_TOPO_DUMP_FILE)
        --hwloc-xml FILE  read what `lstopo FILE.xml` wrote on another machine
        --dot FILE        write the links for graphviz
        --svg FILE        write the links as a picture
        --progress WHEN   show progress on standard error (auto: on a terminal): auto, always, never
    -q, --quiet           leave out notes, advice and progress; warnings and the result remain
    -v, --verbose         add the placement of ranks, the profile, the price of each kind of op, all
                          advice, every link
    -h, --help            print this text
