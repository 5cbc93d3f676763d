Machines that one has in mind: a system line wherever a system's name may stand. -v says which link limits each group of the plan.

    $ printf 'model: {preset: gpt2-124m}\ntrain: {stack: pytorch-ddp, micro_batch: 1, global_batch: 32, dtype: fp16}\n' > c.yaml
    > COLUMNS=999 stepsim predict c.yaml --set 'cluster.system=node:4 gpu:8 rtx4090 pcie4 nic:1x100Gb/s' | sed -n 2,4p
    gpt2-124m (124 M parameters), ddp on 32 ranks (dp 32), fp16
    a step: 32 sequences of 1024 tokens, 1 micro-batch of 1 a replica
    on: hosts of 8 x NVIDIA GeForce RTX 4090, 32 x NVIDIA GeForce RTX 4090 (system line: node:4 gpu:8 rtx4090 pcie4 nic:1x100Gb/s)

    $ printf 'model: {preset: gpt2-124m}\ntrain: {stack: pytorch-ddp, micro_batch: 1, global_batch: 32, dtype: fp16}\n' > c.yaml
    > COLUMNS=999 stepsim predict -v c.yaml --set 'cluster.system=node:4 gpu:8 rtx4090 pcie4 nic:1x100Gb/s' 2>&1 >/dev/null | grep -E 'machine|links'
    stepsim: machine: hosts of 8 x NVIDIA GeForce RTX 4090, system line: node:4 gpu:8 rtx4090 pcie4 nic:1x100Gb/s
    stepsim: links: dp over 32 ranks on 4 hosts: 12.5 GB/s, limited by network between NIC0 and NET, 4 flows share 12.5 GB/s

Behind PCIe switches, and without peer-to-peer, bytes of several GPUs share each uplink:

    $ printf 'model: {preset: gpt2-124m}\ntrain: {stack: pytorch-ddp, micro_batch: 1, global_batch: 8, dtype: fp16}\n' > c.yaml
    > for s in 'gpu:8 rtx4090 switch:4 cpu:1' 'gpu:8 l40s switch:4 cpu:1' 'gpu:8 a100-pcie-80 bridge' dgx-1-v100; do COLUMNS=999 stepsim predict -v c.yaml --set cluster.system="$s" 2>&1 >/dev/null | grep links; done
    stepsim: links: dp over 8 ranks on 1 host: 6.00 GB/s, limited by PCIe between PCI0 and HB0, 4 flows share 24.0 GB/s
    stepsim: links: dp over 8 ranks on 1 host: 24.0 GB/s, limited by PCIe between GPU0 and PCI0, 24.0 GB/s
    stepsim: links: dp over 8 ranks on 1 host: 16.0 GB/s, limited by socket between CPU0 and CPU1, 16.0 GB/s
    stepsim: links: dp over 8 ranks on 1 host: 120 GB/s, limited by NVLink among 8 GPUs, 6 rings of 20.0 GB/s

The hosts stand in the line or in the config; where both say it, they agree:

    $ printf 'model: {preset: gpt2-124m}\ntrain: {stack: pytorch-ddp, micro_batch: 1, global_batch: 32, dtype: fp16}\ncluster: {system: "node:4 gpu:8 rtx4090 nic:1x100Gb", nodes: 2}\n' > c.yaml
    > stepsim predict c.yaml; stepsim predict c.yaml --set cluster.nodes=4 | sed -n 3p; stepsim predict c.yaml --set cluster.nodes=4 --json - | grep -A 1 '"system": "node'
    stepsim: c.yaml:3:19: cluster.system: cluster.nodes is 2, but the system line 'node:4 gpu:8 rtx4090 nic:1x100Gb' has node:4: give one of them
    gpt2-124m (124 M parameters), ddp on 32 ranks (dp 32), fp16
          "system": "node:4 gpu:8 rtx4090 nic:1x100Gb",
          "nodes": 4,

What is wrong with a line: the word, and the nearest valid one.

    $ printf 'model: {preset: gpt2-124m}\n' > c.yaml
    > for s in 'gpu:8 rtx4090 nik:1x100Gb' 'gpu:8 rtx409' 'gpu:8 gpu:4 rtx4090' 'gpu:8 rtx4090 nic:1x100Gz' 'gpu:0 rtx4090' 'gpu:8 rtx4090 nvswitch' 'node:2 gpu:8 rtx4090' 'nodes:2'; do stepsim predict c.yaml --set cluster.system="$s"; done
    stepsim: --set cluster.system=gpu:8 rtx4090 nik:1x100Gb: system line, word 3 'nik:1x100Gb': unknown (nearest: nic)
    stepsim: --set cluster.system=gpu:8 rtx409: system line, word 2 'rtx409': unknown (nearest: rtx4090, rtx4090-48)
    stepsim: --set cluster.system=gpu:8 gpu:4 rtx4090: system line, word 2 'gpu:4': gpu is given twice
    stepsim: --set cluster.system=gpu:8 rtx4090 nic:1x100Gz: system line, word 3 'nic:1x100Gz': expected a data rate such as 400Gb/s (B/s or b/s, with k M G T P or Ki Mi Gi Ti Pi), got "100Gz"
    stepsim: --set cluster.system=gpu:0 rtx4090: system line, word 1 'gpu:0': expected a whole number of 1 to 1024
    stepsim: --set cluster.system=gpu:8 rtx4090 nvswitch: system line, word 3 'nvswitch': the NVIDIA GeForce RTX 4090 has no links of its own to other GPUs
    stepsim: --set cluster.system=node:2 gpu:8 rtx4090: hosts of 8 x NVIDIA GeForce RTX 4090: no NIC, so 2 nodes of it cannot be joined
    stepsim: --set cluster.system=nodes:2: system line, word 1 'nodes:2': unknown (nearest: node)
    [2]

What a catalogue number from memory is worth is said with the prediction:

    $ printf 'model: {preset: gpt2-124m}\ntrain: {stack: pytorch-ddp, micro_batch: 1, global_batch: 8}\n' > c.yaml
    > stepsim predict c.yaml --set cluster.system=server-4xl40s | grep unverified
    warning: the catalogue holds unverified numbers for Server, 4 x L40S at 2 CPUs
