`stepsim bench`: what is wrong with what it is asked for, and its options.

    $ stepsim bench
    stepsim: bench: all_reduce|all_gather|reduce_scatter|broadcast|alltoall|sendrecv missing; `stepsim bench --help` shows what there is
    [2]
    $ stepsim bench allreduce
    stepsim: no collective 'allreduce' (nearest: all_reduce)
    [2]
    $ stepsim bench sendreceive
    stepsim: no collective 'sendreceive' (nearest: sendrecv)
    [2]
    $ stepsim bench all_reduce -b 1M -e 1K
    stepsim: -b 1048576 is more than -e 1024
    [2]
    $ stepsim bench all_reduce -f 1
    stepsim: -f 1: expected a whole number, 2 or more
    [2]
    $ stepsim bench all_reduce -n 0
    stepsim: -n 0: expected a whole number, 1 or more
    [2]
    $ stepsim bench all_reduce -n ten
    stepsim: -n ten: expected a whole number, 1 or more
    [2]
    $ stepsim bench all_reduce -b 12X
    stepsim: -b: expected a size such as 25MiB (B or b, with k M G T P or Ki Mi Gi Ti Pi), got "12X"
    [2]
    $ stepsim bench all_reduce -b -4
    stepsim: -b -4: expected a size between 1 B and 1 PiB
    [2]
    $ stepsim bench all_reduce -d floot
    stepsim: --datatype: unknown value 'floot' (nearest: float)
    [2]
    $ stepsim bench all_reduce -d bf16 --backend host
    stepsim: -d bf16: MPI on the host sums float and int32 only
    [2]
    $ stepsim bench all_reduce -e 64K --max-error 10
    stepsim: --max-error judges rows of at least 1 MiB, and -e is 65536
    [2]
    $ stepsim bench all_reduce -e 1T --backend host
    stepsim: -e 1099511627776: one MPI call carries at most 2147483647 elements
    [1]
    $ stepsim bench all_reduce -b 4G -e 4G -d int32 --json - --csv -
    stepsim: --json - and --csv - cannot both be standard output
    [2]
    $ stepsim bench all_reduce --iterations 3
    stepsim: unknown option --iterations (nearest: --iters)
    [2]
    $ stepsim bench --help
    usage: stepsim bench all_reduce|all_gather|reduce_scatter|broadcast|alltoall|sendrecv [options]
    time and check one collective over a range of sizes, as nccl-tests does, and compare it with the
      prediction
    option                effect
    ------------------------------------------------------------------------------------------------
        --set KEY=VALUE   override one key of the config (repeatable)
        --json FILE       write the result as JSON; - is standard output, in place of the table
        --csv FILE        write the rows as CSV; - is standard output, in place of the table
        --max-error PCT   exit with 3 if the prediction is off by more than PCT per cent of what was
                          measured (bench: the median row from 1 MiB on)
    -b, --minbytes SIZE   smallest size of the whole buffer; K, M, G are powers of 1024; default 1K
    -e, --maxbytes SIZE   largest size; default 64M, on GPUs 1G
    -f, --stepfactor N    factor from size to size; default 4
    -n, --iters N         timed calls of each size; default 20
    -w, --warmup_iters N  untimed calls of each size before them; default 5
    -c, --check N         1: compare every element of one call of each size, 0: do not; default 1
    -d, --datatype TYPE   float, half, bfloat16 or int32 (fp32, fp16, bf16); default float; the host
                          sums float and int32
        --backend KIND    devices to measure (auto: GPUs where there are any): auto, cuda, host
        --share-gpu       allow several ranks on one GPU: results are checked, times mean nothing
        --progress WHEN   show progress on standard error (auto: on a terminal): auto, always, never
    -q, --quiet           leave out notes, advice and progress; warnings and the result remain
    -v, --verbose         add the placement of ranks, the profile, the price of each kind of op, all
                          advice, every link
    -h, --help            print this text
