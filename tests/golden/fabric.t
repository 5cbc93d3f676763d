Links as nccl-tests measured them. A log made of predicted times, with twice the times, has links of half the rate; one with the times themselves moves nothing, alone or as one of a list.

    $ log() { echo '# Collective test starting: all_reduce_perf'; for i in $(seq 0 $(($1 - 1))); do echo "#  Rank $i Group  0 Pid $((100 + i)) on node$((i / 8)) device  $((i % 8)) [0x$((10 + i % 8))] NVIDIA H100 80GB HBM3"; done; echo '# size count type redop root time algbw busbw #wrong time algbw busbw #wrong'; awk "{ printf \"%d %d float sum -1 %.6f 1 1 0 %.6f 1 1 0\\n\", \$1, \$1 / 4, $2 * \$2, $2 * \$2 }"; }
    > for n in 8 16; do for b in 65536 1048576 67108864 268435456 1073741824; do echo $b 1; done | log $n 1 >t.log; stepsim validate t.log --system dgx-h100 --csv - | awk -F, 'NR > 1 { print $5, 1e6 * $6 }' >p.$n; log $n 1 <p.$n >same.$n.log; log $n 2 <p.$n >twice.$n.log; done
    > cat >c.yaml <<'END'
    > model: {preset: gpt2-124m}
    > train: {global_batch: 64, micro_batch: 4}
    > cluster: {system: dgx-h100, nodes: 2, fabric: [same.8.log, same.16.log]}
    > END
    > stepsim predict c.yaml 2>&1 >/dev/null
    > stepsim predict c.yaml --set cluster.fabric=twice.8.log 2>&1 >/dev/null
    > stepsim predict c.yaml --set cluster.fabric=same.8.log,twice.16.log 2>&1 >/dev/null | sed 's/hosts rates x 0.[2-6][0-9], latencies x [2-9][.0-9]*/hosts LOWER, LONGER/'
    > stepsim predict c.yaml --json - -q | grep -A 8 fabric_measured
    > stepsim predict c.yaml -q | grep ^on:
    > stepsim predict c.yaml -q --set cluster.fabric=efa --json - | grep '"network"'
    stepsim: cluster.fabric, 10 rows of nccl-tests against the catalogue: in a host rates x 1.00, latencies x 1.00; between hosts rates x 1.00, latencies x 1.00; median error 0.0 %, before 0.0 %
    stepsim: cluster.fabric, 5 rows of nccl-tests against the catalogue: in a host rates x 0.50, latencies x 2.01; median error 0.1 %, before 100.0 %
    stepsim: cluster.fabric, 10 rows of nccl-tests against the catalogue: in a host rates x 1.00, latencies x 1.00; between hosts LOWER, LONGER; median error 0.0 %, before 41.4 %
        "fabric_measured": {
          "logs": "same.8.log, same.16.log",
          "rows": 10,
          "inside_rate": 1.0,
          "inside_latency": 1.0,
          "network_rate": 1.0,
          "network_latency": 1.0,
          "median_error_before": 5.49323551093424e-7,
          "median_error": 5.49323551093424e-7
    on: NVIDIA DGX H100, 16 x NVIDIA H100 SXM5 80GB (catalogue configs/systems/dgx-h100.yaml; links as
        "network": "efa",
          "network": 0.0169727578853017

Refused: no such network, a file that is none, and this machine.

    $ printf 'model: {preset: gpt2-124m}\ntrain: {global_batch: 64, micro_batch: 4}\ncluster: {system: dgx-h100, nodes: 2}\n' >c.yaml; echo x >no.log
    > stepsim predict c.yaml --set cluster.fabric=infinband; stepsim predict c.yaml --set cluster.fabric=no.log; stepsim predict c.yaml --set cluster.fabric=there/is/none.log
    > stepsim predict c.yaml --set cluster.fabric=no.log --set cluster.system=auto --set cluster.nodes=1
    stepsim: --set cluster.fabric=infinband: unknown fabric 'infinband' (nearest: infiniband)
    stepsim: --set cluster.fabric=no.log: no.log: no row of nccl-tests' table (size, count, type, time, algbw, busbw)
    stepsim: --set cluster.fabric=there/is/none.log: cannot read there/is/none.log: No such file or directory
    stepsim: --set cluster.fabric=no.log: the fabric of a system; with cluster.system: auto the links are measured here
    [2]
