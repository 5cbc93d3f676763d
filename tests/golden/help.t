--help comes from the tables of commands and options: what is printed is what is parsed.

    $ stepsim --help
    stepsim 0.1.0: predicts a distributed training step, executes it, and compares the two op by op.
    usage: stepsim CONFIG.yaml [options]
               the main job: predict the step, execute it on all ranks, compare; alone with a config for more ranks: predict
           stepsim predict CONFIG.yaml [options]
               the prediction alone, for a cluster of any size
           stepsim topo [options]
               the links found on this machine, as a matrix with GB/s; or those of a dumped one
           stepsim calibrate [options]
               measure this machine's compute and link ceilings into a profile (under mpirun: its collectives too)
           stepsim roofline [options]
               measure the roofline: polynomial sweep, products, caches and memory, beside the datasheet
           stepsim bench all_reduce|all_gather|reduce_scatter|broadcast|alltoall|sendrecv [options]
               time and check one collective over a range of sizes, as nccl-tests does, with the predicted time and a verdict beside each row
           stepsim validate TABLE.csv [options]
               predict every row of a table of published measurements: each error, and the summary
           stepsim sweep CONFIG.yaml [options]
               the cross product of values of config keys (--vary, repeatable), each predicted: a table, CSV, a plot
           stepsim compare CONFIG.yaml [options]
               one workload on several systems (--systems A,B,C), each with its best plan, at equal GPUs, budget or target: time, memory, energy, money, and which is ahead
           stepsim plan CONFIG.yaml [options]
               search the parallel plans that fit in memory, best first; keys given by --set are held, those of the file are where it starts
           stepsim overlap TRACE... [CONFIG.yaml] [options]
               compute, communication and overlap of a real run, from PyTorch profiler traces or Nsight Systems SQLite exports; beside the prediction when a config is given
           stepsim list systems|gpus|models|stacks|fabrics|parameters [options]
               the catalogue; the fitted constants with meaning and source
    Under `mpirun -np N` every rank takes part. `stepsim COMMAND --help` names the options of one command. All of them:
    option                                effect
    ------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------
        --set KEY.PATH=VALUE              override one key of the config (repeatable)
        --vary KEY.PATH=V1,V2,...         values of one key of the config (repeatable: all combinations)
        --systems A,B,...                 names of `stepsim list systems`, files or synthetic lines, each with @GPUS behind it for a size of its own (repeatable)
        --fixed-plan                      the config's own plan on each system, in place of the best one
        --budget USD                      as many whole hosts of each as this buys
        --target "TOKENS tokens in TIME"  the fewest hosts of each that train so many tokens in so long (15e12 tokens in 30d); without a time: the tokens that are counted
        --json FILE                       write the result as JSON; - is standard output, in place of the table
        --trace FILE                      write predicted and measured step as a Chrome trace, which opens in Perfetto
        --html FILE                       write the result as one page that opens offline: timeline, roofline, memory, the table
        --html FILE                       write curves or bars and the table as one page that opens offline
        --csv FILE                        write the rows as CSV; - is standard output, in place of the table
        --max-error PCT                   exit with 3 when the time (bench: the median row from 1 MiB on) is predicted wrong by more than PCT per cent
    -b, --minbytes SIZE                   the smallest size, of the whole buffer; K, M, G are powers of 1024; default 1K
    -e, --maxbytes SIZE                   the largest size; default 64M, on GPUs 1G
    -f, --stepfactor N                    from size to size; default 4
    -n, --iters N                         timed calls of each size; default 20
    -w, --warmup_iters N                  calls before them; default 5
    -c, --check N                         compare every element of one call of each size; 0: do not; default 1
    -d, --datatype TYPE                   float, half, bfloat16 or int32 (fp32, fp16, bf16); default float; the host sums float and int32
        --dump-program                    print the step program, one line an op, in place of the prediction
        --print-ranks                     print how many ranks to start for this config, and stop; 0: it is not for this machine
    -o, --output FILE                     where the profile goes; - is standard output; default: this machine's cache
        --smi FILE                        of another machine: what `nvidia-smi topo -m` printed there; - is standard input
        --nccl-xml FILE                   of another machine: its NCCL or RCCL topology file (NCCL_TOPO_DUMP_FILE)
        --hwloc-xml FILE                  of another machine: what `lstopo FILE.xml` wrote there
        --dot FILE                        write the links for graphviz
        --svg FILE                        write the links as a picture
        --dtype FORMAT                    measure matrix products in this format alone
        --time SECONDS                    about how long it may take (default 40 s): larger sizes, or smaller ones
        --plot FILE                       write the roofline, the step time over the first varied key, step time and memory of plans, or the time on each system, as a picture: SVG, or PNG if FILE ends in .png
        --gpus N                          so many GPUs of the system, or of each, in place of the config's nodes
        --exhaustive                      prune nothing: every plan is evaluated
        --write FILE                      write the best plan as a config; - is standard output, in place of the table
        --backend KIND                    what is measured: cuda, host, or auto (GPUs where there are any)
        --share-gpu                       allow several ranks on one GPU: correctness only
        --progress WHEN                   the progress line on standard error: auto (when a terminal reads it), always, never
    -q, --quiet                           no notes, no advice and no progress line; warnings and the result remain
    -v, --verbose                         also the placement of ranks, the profile, the price of each kind of op, all advice, every link
    -h, --help                            this text
    Exit codes: 0 done; 1 the execution failed; 2 the command line, config or input file is wrong; 3 done, but --max-error was missed.

    $ stepsim predict --help
    usage: stepsim predict CONFIG.yaml [options]
    the prediction alone, for a cluster of any size
    option                    effect
    --------------------------------------------------------------------------------------------------------------------------------------
        --set KEY.PATH=VALUE  override one key of the config (repeatable)
        --json FILE           write the result as JSON; - is standard output, in place of the table
        --trace FILE          write predicted and measured step as a Chrome trace, which opens in Perfetto
        --html FILE           write the result as one page that opens offline: timeline, roofline, memory, the table
        --csv FILE            write the rows as CSV; - is standard output, in place of the table
        --max-error PCT       exit with 3 when the time (bench: the median row from 1 MiB on) is predicted wrong by more than PCT per cent
        --dump-program        print the step program, one line an op, in place of the prediction
        --print-ranks         print how many ranks to start for this config, and stop; 0: it is not for this machine
        --progress WHEN       the progress line on standard error: auto (when a terminal reads it), always, never
    -q, --quiet               no notes, no advice and no progress line; warnings and the result remain
    -v, --verbose             also the placement of ranks, the profile, the price of each kind of op, all advice, every link
    -h, --help                this text

    $ stepsim -h list
    usage: stepsim list systems|gpus|models|stacks|fabrics|parameters [options]
    the catalogue; the fitted constants with meaning and source
    option               effect
    -------------------------------------------------------------------------------------------------------------------
        --progress WHEN  the progress line on standard error: auto (when a terminal reads it), always, never
    -q, --quiet          no notes, no advice and no progress line; warnings and the result remain
    -v, --verbose        also the placement of ranks, the profile, the price of each kind of op, all advice, every link
    -h, --help           this text

    $ stepsim --version
    stepsim 0.1.0
    CUDA: * (glob)
