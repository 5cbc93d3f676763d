Tables of published measurements. Collectives are recognised by their columns; every row is judged, and what is special is counted apart. Errors change with the model: what is compared here is the shape.

    $ COLUMNS=999 stepsim validate $ROOT/tests/validation/collectives-sample.csv -q | head -n 1
    errors in %   collective      bytes      rows  median    p90  signed  inside  best  median   p90
    $ COLUMNS=999 stepsim validate $ROOT/tests/validation/collectives-sample.csv -q | cut -c 1-46 | sed -n '3,/special/p'
    alcf-polaris  all_gather      <= 64 KiB     8 
    alcf-polaris  all_gather      to 16 MiB     8 
    alcf-polaris  all_gather      > 16 MiB      8 
    alcf-polaris  all_reduce      <= 64 KiB     8 
    alcf-polaris  all_reduce      to 16 MiB     8 
    alcf-polaris  all_reduce      > 16 MiB      7 
    alcf-polaris  alltoall        <= 64 KiB     8 
    alcf-polaris  alltoall        to 16 MiB     8 
    alcf-polaris  alltoall        > 16 MiB      8 
    alcf-sophia   all_gather      <= 64 KiB     4 
    alcf-sophia   all_gather      to 16 MiB     4 
    alcf-sophia   all_gather      > 16 MiB      4 
    alcf-sophia   all_reduce      <= 64 KiB     3 
    alcf-sophia   all_reduce      to 16 MiB     3 
    alcf-sophia   all_reduce      > 16 MiB      3 
    alcf-sophia   alltoall        <= 64 KiB     3 
    alcf-sophia   alltoall        to 16 MiB     3 
    alcf-sophia   alltoall        > 16 MiB      3 
    h100-c01      all_reduce      > 16 MiB      1 
    h100-c01      all_gather      > 16 MiB      1 
    h100-c01      reduce_scatter  > 16 MiB      1 
    h100-c01      alltoall        > 16 MiB      1 
    h100-c01      sendrecv        > 16 MiB      1 
    a100-sxm      all_reduce      <= 64 KiB     3 
    a100-sxm      all_reduce      to 16 MiB     3 
    a100-sxm      all_reduce      > 16 MiB      2 
    ----------------------------------------------
    all rows      all             all         114 
    all rows      all             < 1 MiB      37 
    all rows      all             >= 1 MiB     77 
    special rows  all             all          31 
    $ stepsim validate $ROOT/tests/validation/collectives-sample.csv -q | sed '1,/special/d'
    rows  apart, because                                                             first
    --------------------------------------------------------------------------------------------------
       1  1.55 times slower than the same with NCCL 2.21                             alcf-polaris-020
       6  TCP at three times the rate of the other rows with the same environment    alcf-polaris-023
       1  not predicted: gpu: the catalogue does not know the RTX 2080 Ti (nearest:  rtx2080ti-001
          rtx3080)
       3  a broken host path: 2.2 GB/s                                               rtx4090-001
       2  not predicted: intra: '' is not known (known: 4-GPU all-to-all, NVL72,     stas-arb-001
          NVSwitch, bridge, PCIe, as sold, NVLink, SXM, xGMI, Infinity Fabric, ICI)
      21  means over jobs of a shared cluster, one size                              us-comm-allreduce

The best of each machine, collective, ranks and size, and the choice that is behind a figure, stand in the JSON:

    $ stepsim validate $ROOT/tests/validation/collectives-sample.csv --json r.json >/dev/null && grep -c '"id"' r.json && grep -c '"best": true' r.json && grep -c '"reason": null' r.json
    > stepsim validate $ROOT/tests/validation/collectives-sample.csv --json - | grep -A 12 'h100-c01-001' | grep -o '"[a-z0-9_]*":' | tr '\n' ' '
    148
    37
    145
    "id": "machine": "collective": "ranks": "bytes": "predicted_s": "measured_s": "error": "interval90_s": 

A word that is not known is the row's reason, not the end:

    $ printf 'id,collective,gpu,n_gpus,n_nodes,intra,inter,nccl_version,bytes,dtype,time_us_outofplace\na-1,all_reduce,H100 80GB,8,1,NVLink4 NVSwitch,,,1048576,float,50\na-2,all_reduce,FOO 9,8,1,NVLink4 NVSwitch,,,1048576,float,50\na-3,reduce,H100 80GB,8,1,NVLink4 NVSwitch,,,1048576,float,50\n' > t.csv
    > stepsim validate t.csv -q | sed '1,/^rows/d'
    -------------------------------------------------------------------------------------------------
       1  not predicted: gpu: the catalogue does not know the FOO 9 (`stepsim list gpus` lists  a-2
          them)
       1  not predicted: collective: 'reduce' is not known (nearest: reduce_scatter; known:     a-3
          all_reduce, all_gather, reduce_scatter, broadcast, alltoall, sendrecv)

Cards that have no other form need no "PCIe" in their name, half-precision BERT reduces fp16 gradients, and a GPU without tf32 runs such rows in fp32:

    $ { head -n 1 $ROOT/tests/validation/steps.csv; grep -E '^lambda-(0007|0055|0205|0979),' $ROOT/tests/validation/steps.csv; } >t.csv
    > stepsim validate t.csv -q | awk '/^ratio/ { print $2, "rows predicted" } /not predicted/'
    4 rows predicted

Each row and its error, then the summary (-q: the summary alone); the CSV holds what the JSON holds:

    $ { head -n 3 $ROOT/tests/validation/steps.csv; sed -n 's/^mpt-0002,/odd-0001,/p' $ROOT/tests/validation/steps.csv | sed 's/,[AHV]100[^,]*,/,FOO 9,/'; } >t.csv
    > COLUMNS=999 stepsim validate t.csv | sed -n '1,5p' | sed 's/[0-9][0-9.]* s/# s/g; s/[+-][0-9.]* %/+# %/; s/  *$//; s/   */  /g; s/---*/--/'
    > COLUMNS=999 stepsim validate t.csv --json t.json --csv out.csv -q | head -n 1
    > head -n 5 $ROOT/tests/validation/collectives-sample.csv >c.csv; COLUMNS=999 stepsim validate c.csv --json c.json --csv c.out.csv | sed -n 1p
    > python3 -c '
    > import csv, json
    > for j, c in ("t.json", "out.csv"), ("c.json", "c.out.csv"):
    >     a, b = json.load(open(j))["results"], list(csv.DictReader(open(c)))
    >     print(len(a), [r["id"] for r in a] == [r["id"] for r in b], all(abs((x[k] or 0) - float(y[k] or 0)) < 1e-6 for x, y in zip(a, b) for k in ("predicted_s", "measured_s", "error")), [x["reason"] or "" for x in a] == [y["reason"] for y in b])'
    row  predicted  measured  error  90 % interval
    --
    mpt-0001  # s  # s  +# %  # s to # s
    mpt-0002  # s  # s  +# %  # s to # s
    odd-0001  -  # s  -  -  gpu: the catalogue does not know the FOO 9 SXM 80GB (`stepsim list gpus` lists them)
    errors in %                  rows  median  mean  p90  worst  signed  inside
    row               collective  ranks      size      busbw  predicted  measured    error       90 % interval
    3 True True True
    4 True True True

Text that is no UTF-8 costs no row: a table in another encoding, and a name that was cut within a character.

    $ { head -n 1 $ROOT/tests/validation/steps.csv; sed -n 's/^mpt-0002,/\xe9-1,/p' $ROOT/tests/validation/steps.csv; } >t.csv
    > sed -n 's/^mpt-0002,/b-2,/p' $ROOT/tests/validation/steps.csv | sed "s/,[AHV]100[^,]*,/,$(printf 'é%.0s' $(seq 1 90)),/" >>t.csv
    > stepsim validate t.csv --json t.json -q >/dev/null; python3 -c '
    > import json
    > for r in json.load(open("t.json"))["results"]:
    >     print(r["id"], (r["reason"] or "")[:40])'
    ?-1 
    b-2 gpu: the catalogue does not know the ééé

The column `framework` begins with a name of a stack (`stepsim list stacks`); what a row says that is not known is answered with what is:

    $ { head -n 1 $ROOT/tests/validation/outside.csv; grep '^titan-a100-01,' $ROOT/tests/validation/outside.csv; } >t.csv
    > sed 's/torchtitan FSDP2, [a-z]*/TorchTitan (no compile, eager)/' t.csv >u.csv; stepsim validate t.csv --json a.json -q >/dev/null; stepsim validate u.csv --json b.json -q >/dev/null; cmp a.json b.json && echo same
    > for words in 's/torchtitan FSDP2/torchtitanic/' 's/,bf16,/,fp61,/' 's/,fsdp,/,fsdq,/' 's/,adamw,/,shampoo,/' 's/,flash,/,sparse,/' 's/,A100,/,A1OO,/'; do sed "$words" t.csv >u.csv; stepsim validate u.csv --csv - | tail -n 1 | cut -d , -f 12-; done
    same
    "framework: 'torchtitanic, eager' is not known (nearest: torchtitan ... eager)"
    dtype: 'fp61' is not known (nearest: fp16)
    sharding: 'fsdq' is not known (nearest: fsdp)
    "optimizer: 'shampoo' is not known (known: adam, adamw, adam8bit, adamw8bit, anyprecisionadamw, lamb, lion, muon, sgd, adafactor, none)"
    "attention: 'sparse' is not known (known: flash, flash1, flash2, flash3, flash4, masked SDPA, naive)"
    gpu: the catalogue does not know the A1OO SXM 80GB (`stepsim list gpus` lists them)
    $ printf 'id,collective,gpu,n_gpus,n_nodes,intra,inter,nccl_version,bytes,dtype,time_us_outofplace\na-1,all_reduce,H100 80GB,8,1,NVSwatch,,,1048576,float,50\n' >t.csv; stepsim validate t.csv --csv - | tail -n 1 | grep -o 'intra.*'
    intra: 'NVSwatch' is not known (nearest: NVSwitch; known: 4-GPU all-to-all, NVL72, NVSwitch, bridge, PCIe, as sold, NVLink, SXM, xGMI, Infinity Fabric, ICI)",3.670016e+10

Cells are read as people write them, numbers and words. What is no number is the row's reason:

    $ { head -n 1 $ROOT/tests/validation/outside.csv; grep '^titan-a100-03,' $ROOT/tests/validation/outside.csv; } >t.csv
    > python3 - <<'END'
    > import csv, json, subprocess
    > rows = list(csv.DictReader(open("t.csv")))
    > same = [{"seq_len": "8K"}, {"seq_len": " 8,192 "}, {"n_gpus": "64 GPUs"}, {"tp": "-"}, {"pp": "none"}, {"vp": "n/a"}, {"step_time_s": "24749.2 ms"}, {"tokens_per_s": "~21.2k", "step_time_s": "N/A"}, {"micro_batch_seqs": "?"}, {"tied_emb": "FALSE"}, {"adapter": "none"}, {"sharding": "ZeRO-3"}, {"dtype": "BF16 mixed precision"}, {"attention": "PyTorch SDPA"}, {"act_ckpt": "Full AC"}, {"gpu": "A100-80GB"}, {"gpu": "DGX A100"}, {"gpu_variant": "HGX 80GB"}, {"gpu_variant": "80G"}, {"interconnect_intra": "nvlink"}]
    > rows += [dict(rows[0], **x) for x in same]
    > other = [{"n_gpus": "many"}, {"global_batch_seqs": "6 4"}, {"global_batch_seqs": "64.5"}, {"seq_len": "8M"}, {"mem_gb": "40 GiB"}, {"n_gpus": "-64"}, {"global_batch_seqs": "1,02"}]
    > rows += [dict(rows[0], **x) for x in other]
    > with open("u.csv", "w") as out:
    >     w = csv.DictWriter(out, list(rows[0]))
    >     w.writeheader()
    >     w.writerows(rows)
    > subprocess.run(["stepsim", "validate", "u.csv", "--json", "u.json", "-q"], stdout=subprocess.DEVNULL, check=True)
    > results = json.load(open("u.json"))["results"]
    > print(len(same), all(r["predicted_s"] == results[0]["predicted_s"] and abs(r["measured_s"] / results[0]["measured_s"] - 1) < 0.01 for r in results[:len(same) + 1]))
    > for r in results[len(same) + 1:]:
    >     print(r["reason"])
    > END
    20 True
    n_gpus: 'many' is no number (accepted: a whole number, 1024 or 1,024)
    global_batch_seqs: '6 4' is no number (accepted: a whole number, 1024 or 1,024)
    global_batch_seqs: '64.5' is no number (accepted: a whole number, 1024 or 1,024)
    seq_len: '8M' is no number (accepted: a length, 8192 or 8K)
    mem_gb: '40 GiB' is no number (accepted: a number of GB)
    n_gpus: '-64' is no number (accepted: a whole number, 1024 or 1,024)
    global_batch_seqs: '1,02' is no number (accepted: a whole number, 1024 or 1,024)

Software that says what it is built on is taken as that, with a wider interval; rates whose parts are counted are totals:

    $ { head -n 1 $ROOT/tests/validation/outside.csv; grep '^titan-a100-03,' $ROOT/tests/validation/outside.csv; } >t.csv
    > python3 - <<'END'
    > import csv, json, subprocess
    > rows = list(csv.DictReader(open("t.csv")))
    > rows[0]["gpu"] = "H100"
    > for x in {"framework": "nanotron"}, {"framework": "our trainer (on nanotron)"}, {"interconnect_inter": "2x dual-port HDR100 (400 Gbps aggregated)"}, {"interconnect_inter": "dual HDR200"}, {"interconnect_inter": "4x100Gbps"}:
    >     rows.append(dict(rows[0], **x))
    > with open("u.csv", "w") as out:
    >     w = csv.DictWriter(out, list(rows[0]))
    >     w.writeheader()
    >     w.writerows(rows)
    > subprocess.run(["stepsim", "validate", "u.csv", "--json", "u.json", "-q"], stdout=subprocess.DEVNULL, check=True)
    > r = json.load(open("u.json"))["results"]
    > print(r[1]["predicted_s"] == r[2]["predicted_s"], r[2]["interval90_s"][1] > r[1]["interval90_s"][1])
    > print(r[3]["network"], abs(r[3]["predicted_s"] / r[5]["predicted_s"] - 1) < 0.05, abs(r[4]["predicted_s"] / r[5]["predicted_s"] - 1) < 0.05)
    > END
    True True
    named True True

A config takes the names as well, and says which file it is:

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set train.stack=torchtitan -q --json a.json >/dev/null; stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set train.stack=pytorch-fsdp -q --json b.json >/dev/null; cmp a.json b.json && echo same
    > stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set train.stack=TorchTitan --json /dev/null 2>&1 | grep train.stack
    > stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set train.stack=torchtitian
    same
    stepsim: train.stack: "TorchTitan" is configs/stacks/pytorch-fsdp.yaml
    stepsim: --set train.stack=torchtitian: unknown stack "torchtitian" (nearest: torchtitan)
    [2]

A row on several hosts whose network has no rate takes the vendor's usual one: it is marked, its interval is wider, and the summary counts such rows. Columns say what the words of other columns do not:

    $ { head -n 1 $ROOT/tests/validation/outside.csv; grep '^titan-a100-03,' $ROOT/tests/validation/outside.csv; } >t.csv
    > cat >edit.py <<'END'
    > import csv, json, subprocess, sys
    > row = next(csv.DictReader(open('t.csv')))
    > for change in [{}, {'interconnect_inter': '8x200Gbps IB'}, {'fabric': 'tcp'}, {'nics': '4x100Gbps'}, {'n_gpus': '8', 'dp': '8', 'global_batch_seqs': '8'}, {'fabric': 'infiniban'}, {'param_dtype': 'bf16'}, {'adapter': 'LoRA'}, {'preset': 'qwen3-30b-a3b', 'model': 'Qwen3'}, {'set': 'train.launch_blocking=true parallel.prefetch=2'}, {'set': 'train.launchblocking=true'}, {'set': 'a=b ' * 13}]:
    >     new = dict(row, **change)
    >     with open('u.csv', 'w') as f:
    >         w = csv.DictWriter(f, new); w.writeheader(); w.writerow(new)
    >     subprocess.run(['stepsim', 'validate', 'u.csv', '--json', 'u.json', '-q'], stdout=subprocess.DEVNULL)
    >     r = json.load(open('u.json'))['results'][0]
    >     if not change:
    >         first = r
    >     if r['reason']:
    >         print(change, r['reason'])
    >     else:
    >         a, b = [x['interval90_s'][1] / x['predicted_s'] for x in (first, r)]
    >         print(change, r['network'], 'same' if r['predicted_s'] == first['predicted_s'] else 'faster' if r['predicted_s'] < first['predicted_s'] else 'slower', 'narrower' if b < a else 'wide')
    > END
    > python3 edit.py
    > stepsim validate t.csv -q | tail -n 3
    {} assumed same wide
    {'interconnect_inter': '8x200Gbps IB'} named same narrower
    {'fabric': 'tcp'} assumed slower wide
    {'nics': '4x100Gbps'} named slower narrower
    {'n_gpus': '8', 'dp': '8', 'global_batch_seqs': '8'} None faster wide
    {'fabric': 'infiniban'} system line, word 4 'fabric:infiniban': unknown fabric 'infiniban' (nearest: infiniband)
    {'param_dtype': 'bf16'} assumed faster narrower
    {'adapter': 'LoRA'} assumed faster wide
    {'preset': 'qwen3-30b-a3b', 'model': 'Qwen3'} assumed faster wide
    {'set': 'train.launch_blocking=true parallel.prefetch=2'} assumed slower wide
    {'set': 'train.launchblocking=true'} --set train.launchblocking=true: unknown key (nearest: train.launch_blocking)
    {'set': 'a=b a=b a=b a=b a=b a=b a=b a=b a=b a=b a=b a=b a=b '} set: more than 12 keys
    rows  network                                             first of them
    -----------------------------------------------------------------------
       1  assumed (no rate is printed), with wider intervals  titan-a100-03

Outputs of nccl-tests are validated, too: the ranks, the hosts and the GPU are those of the log, the network is assumed unless --system names the machine:

    $ { echo '# Collective test starting: all_reduce_perf'; for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo "#  Rank $i Group  0 Pid $((100 + i)) on node$((i / 8)) device  $((i % 8)) [0x$((10 + i % 8))] NVIDIA H100 80GB HBM3"; done; echo '#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong'; echo '     1048576        262144     float     sum      -1    60.00   17.48   32.77      0    60.10   17.45   32.71      0'; echo '  1073741824     268435456     float     sum      -1   4700.0  228.46  428.35      0   4710.0  227.97  427.45      0'; } >two.log
    > COLUMNS=999 stepsim validate two.log | sed -n '1,4p' | sed 's/  *$//; s/[0-9.]* us to [0-9.]* us/# us to # us/; s/[0-9.]* ms to [0-9.]* ms/# ms to # ms/; s/[+-][0-9.]* %/+# %/'
    > COLUMNS=999 stepsim validate two.log --json - | grep -o '"network": "[a-z]*"'
    > COLUMNS=999 stepsim validate two.log two.log --system dgx-h100 --json - | grep -o '"network": "[a-z]*"'
    > stepsim validate two.log --system dgx-h10 -q | tail -n 3; printf 'a,b\n1,2\n' >t.csv; stepsim validate two.log t.csv; stepsim validate t.csv --system dgx-h100
    row    collective  ranks      size      busbw  predicted  measured    error       90 % interval
    -------------------------------------------------------------------------------------------------
    two-1  all_reduce     16  1.00 MiB  32.8 GB/s    72.9 us   60.0 us  +# %   # us to # us
    two-2  all_reduce     16  1.00 GiB   428 GB/s    4.51 ms   4.70 ms   +# %  # ms to # ms
    "network": "assumed"
    "network": "assumed"
    "network": "named"
    "network": "named"
    "network": "named"
    "network": "named"
    rows  apart, because                                               first
    ------------------------------------------------------------------------
       2  not predicted: unknown system 'dgx-h10' (nearest: dgx-h100)  two-1
    stepsim: t.csv: no row of nccl-tests' table (size, count, type, time, algbw, busbw)
    stepsim: --system dgx-h100: the rows of t.csv name their machines
    [2]

Collectives are read as frameworks write them. A preset whose chunks a stage are left open has those of Megatron's recipes, five where that divides its layers:

    $ for name in all_gather AllGather 'All Gather'; do printf 'id,collective,gpu,n_gpus,n_nodes,intra,inter,nccl_version,bytes,dtype,time_us_outofplace,busbw\na-1,%s,H100 80GB,8,1,NVlink4 nvswitch,,,1048576,float,,100\n' "$name" >t.csv; stepsim validate t.csv --csv - -q | tail -n 1 | cut -d , -f 1-7; done | uniq -c | sed 's/^ *//; s/,[^,]*,9/,#,9/'
    > for vp in '' 5 2; do printf 'id,framework,gpu,gpu_variant,gpus_per_node,n_gpus,interconnect_intra,interconnect_inter,n_layers,d_model,n_heads,vocab,preset,seq_len,global_batch_seqs,micro_batch_seqs,tp,pp,vp,act_ckpt,step_time_s\nx-1,Megatron-Core,H100,SXM,8,64,NVLink,8x400Gb/s IB,,,,,llama3-70b,8192,128,1,4,4,%s,none,9\n' "$vp" >p.csv; stepsim validate p.csv --csv - -q | tail -n 1 | cut -d , -f 2; done | uniq -c | awk '{ print $1 }'
    3 a-1,a,all_gather,8,1048576,#,9.17504e-06
    2
    1

The JSON says what a row's interval consists of; the squares add up, with what only the table adds (a network without a rate, something inferred):

    $ { head -n 1 $ROOT/tests/validation/outside.csv; grep '^chenyaofo-01,' $ROOT/tests/validation/outside.csv; } >t.csv
    > stepsim validate t.csv --json r.json -q >/dev/null && python3 - <<'END'
    > import json, math
    > r = json.load(open("r.json"))["results"][0]
    > parts, whole = r["interval90_parts"], math.log(r["interval90_s"][1] / r["predicted_s"])
    > inferred = math.sqrt(whole**2 - sum(w * w for w in parts.values()))
    > print(" ".join(sorted(parts)), parts["software"], "%.3f" % inferred)
    > END
    gpu network software traffic 0.37 0.130

A model fine-tuned for a task has a head of two columns for it and none of its vocabulary:

    $ for model in 'BERT-base SQuAD v1.1' 'bert-base on GLUE' BERT-base; do for vocab in 30522 119547; do printf 'id,framework,gpu,gpu_variant,gpus_per_node,n_gpus,interconnect_intra,model,n_layers,d_model,n_heads,vocab,seq_len,global_batch_seqs,micro_batch_seqs,dtype,arch,attention,step_time_s\nx-1,PyTorch DDP,A100,SXM 80GB,8,1,NVLink,%s,12,768,12,%s,384,32,32,fp16,encoder,naive,0.1\n' "$model" $vocab >p.csv; stepsim validate p.csv --csv - -q | tail -n 1 | awk -F , '{ print ($2 < 0.06 ? "task" : "vocabulary") }'; done; done | uniq -c | sed 's/^ *//'
    4 task
    2 vocabulary
    $ for model in 'BERT-base SQuAD v1.1' BERT-base; do printf 'id,framework,gpu,gpu_variant,gpus_per_node,n_gpus,interconnect_intra,model,n_layers,d_model,n_heads,vocab,preset,seq_len,global_batch_seqs,micro_batch_seqs,dtype,arch,attention,step_time_s\nx-1,PyTorch DDP,A100,SXM 80GB,8,1,NVLink,%s,,,,,bert-base,384,32,32,fp16,encoder,naive,0.1\n' "$model" >p.csv; stepsim validate p.csv --csv - -q | tail -n 1 | awk -F , '{ print ($2 < 0.06 ? "task" : "vocabulary") }'; done
    task
    vocabulary

Rows are judged on all cores. What comes out does not depend on how many there are.

    $ stepsim validate $ROOT/tests/validation/steps-sample.csv --csv all.csv -q >all.txt; taskset -c $(taskset -cp $$ | grep -o '[0-9]*$') stepsim validate $ROOT/tests/validation/steps-sample.csv --csv one.csv -q >one.txt; cmp all.csv one.csv && cmp all.txt one.txt && sed 1d all.csv | wc -l
    74

A list of words that is broken, or that lacks a column, ends the command before its first row:

    $ mkdir home && cp -r $ROOT/configs home/
    > for edit in 's/^adapter:/adaptor:/' '0,/words:/s//wordz:/' 's/^sharding:/sharding: [/'
    > do sed "$edit" $ROOT/configs/words/cells.yaml >home/configs/words/cells.yaml
    > for table in steps collectives
    > do STEPSIM_HOME=home stepsim validate $ROOT/tests/validation/$table-sample.csv -q; echo $?
    > done
    > done
    stepsim: home/configs/words/cells.yaml:4:1: expected the words of the column adapter
    2
    stepsim: home/configs/words/cells.yaml:4:1: expected the words of the column adapter
    2
    stepsim: home/configs/words/cells.yaml:5:3: sharding: expected its words
    2
    stepsim: home/configs/words/cells.yaml:5:3: sharding: expected its words
    2
    stepsim: home/configs/words/cells.yaml:6:8: did not find expected ',' or ']' (while parsing a flow sequence that began at home/configs/words/cells.yaml:4:11)
    2
    stepsim: home/configs/words/cells.yaml:6:8: did not find expected ',' or ']' (while parsing a flow sequence that began at home/configs/words/cells.yaml:4:11)
    2
