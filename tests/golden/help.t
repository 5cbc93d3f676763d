--help comes from the tables of commands and options: what is printed is what is parsed.

    $ stepsim --help
    stepsim 0.1.0: predicts a distributed training step, executes it, and compares the two op by op.
    usage: stepsim CONFIG.yaml [options]
               predict the step, execute it on all ranks, and compare; without mpirun, a config for more
                 ranks is predicted
           stepsim predict CONFIG.yaml [OTHER.yaml] [options]
               predict the step, for a cluster of any size; two configs are set beside each other
           stepsim init [FILE] [options]
               write a short commented config for --model, --system and --gpus, to start from
           stepsim import FILE [MODEL] [options]
               write another framework's config (torchtitan, Megatron-LM, DeepSpeed and others) as
                 CONFIG.yaml, with a remark for each key
           stepsim export CONFIG.yaml [options]
               write a config as another framework's
           stepsim topo [options]
               print the links of this machine as a matrix in GB/s, or those of a dumped machine
           stepsim calibrate [options]
               measure what this machine's devices and links reach (under mpirun: its collectives too),
                 and keep it as the profile that predictions take
           stepsim roofline [options]
               measure the roofline (arithmetic of rising intensity, matrix products, caches, memory)
                 and compare it with the datasheet
           stepsim bench all_reduce|all_gather|reduce_scatter|broadcast|alltoall|sendrecv [options]
               time and check one collective over a range of sizes, as nccl-tests does, and compare it
                 with the prediction
           stepsim validate FILE... [options]
               predict every row of a table of published measurements, or of outputs of nccl-tests, and
                 sum up the errors
           stepsim sweep CONFIG.yaml [options]
               predict every combination of the values of --vary: a table, CSV, a plot
           stepsim compare CONFIG.yaml [options]
               compare one workload on several systems, each with its best plan: time, memory, energy,
                 money
           stepsim plan CONFIG.yaml [options]
               search the parallel plans that fit in memory, best first; keys given by --set stay fixed
           stepsim overlap TRACE... [CONFIG.yaml] [options]
               report compute, communication and overlap in traces of a real run (PyTorch profiler,
                 Nsight Systems SQLite)
           stepsim compare-log LOG... CONFIG.yaml [options]
               set the step times of a training log (torchtitan, Megatron-LM, NeMo, DeepSpeed, ...)
                 beside the prediction of its config
           stepsim fit LOG... CONFIG.yaml [options]
               adjust the numbers of a software stack to your own training logs, with cross-validation,
                 and write the stack
           stepsim list systems|gpus|models|stacks|fabrics|parameters|keys [options]
               print a catalogue; parameters: the fitted constants with meaning and source
    Under `mpirun -np N` every rank takes part. `stepsim COMMAND --help` names the options of one
      command. Every command takes:
    option               effect
    -----------------------------------------------------------------------------------------------
        --progress WHEN  show progress on standard error (auto: on a terminal): auto, always, never
    -q, --quiet          leave out notes, advice and progress; warnings and the result remain
    -v, --verbose        add the placement of ranks, the profile, the price of each kind of op, all
                         advice, every link
    -h, --help           print this text
    Exit codes: 0 done; 1 the execution failed; 2 the command line, config or input file is wrong;
      3 done, but --max-error or --require-fit was missed.

    $ stepsim predict --help
    usage: stepsim predict CONFIG.yaml [OTHER.yaml] [options]
    predict the step, for a cluster of any size; two configs are set beside each other
    option                                effect
    ----------------------------------------------------------------------------------------------------
        --model NAME                      the model, in place of a config or where another framework's
                                          config names none: a name of `stepsim list models`, a
                                          config.json or its folder
        --from NAME                       the framework of the file, where its keys do not tell:
                                          accelerate, automodel, axolotl, deepspeed, gpt-neox,
                                          internevo, levanter, lingua, litgpt, llama-factory,
                                          llm-foundry, maxtext, megatron, nanotron, nemo, olmo,
                                          olmo-core, prime-rl, torchtitan, torchtitan-0.2, torchtune,
                                          transformers
        --system NAME                     with --model or another framework's config: a name of `stepsim
                                          list systems`, or a line such as "gpu:8 rtx4090"; default
                                          dgx-h100
        --strategy NAME                   with --model; default fsdp (on one GPU ddp): ddp, zero1,
                                          zero2, fsdp, hsdp
        --tokens N                        with --model: tokens a step, such as 4M; default 4,194,304
        --set KEY=VALUE                   override one key of the config (repeatable)
        --target "TOKENS tokens in TIME"  add time, energy, CO2 and money of so many tokens (15e12
                                          tokens) or steps (500k steps)
        --json FILE                       write the result as JSON; - is standard output, in place of
                                          the table
        --trace FILE                      write the predicted and measured step as a Chrome trace, which
                                          opens in Perfetto
        --memory-snapshot FILE            write the predicted memory over the step for PyTorch's viewer
                                          (memory_viz)
        --html FILE                       write the result as one page that opens offline: timeline,
                                          roofline, memory, the table
        --csv FILE                        write the rows as CSV; - is standard output, in place of the
                                          table
        --max-error PCT                   exit with 3 if the prediction is off by more than PCT per cent
                                          of what was measured (bench: the median row from 1 MiB on)
        --require-fit                     exit with 3 if it does not fit in memory (sweep, plan: if
                                          nothing does)
        --dump-program                    print the step program, one line an op, in place of the
                                          prediction
        --print-ranks                     print how many ranks to start for this config, and stop; 0: it
                                          is for another machine
        --gpus N                          number of GPUs of the system, or of each system, in place of
                                          the config's nodes
        --progress WHEN                   show progress on standard error (auto: on a terminal): auto,
                                          always, never
    -q, --quiet                           leave out notes, advice and progress; warnings and the result
                                          remain
    -v, --verbose                         add the placement of ranks, the profile, the price of each
                                          kind of op, all advice, every link
    -h, --help                            print this text

    $ stepsim -h list
    usage: stepsim list systems|gpus|models|stacks|fabrics|parameters|keys [options]
    print a catalogue; parameters: the fitted constants with meaning and source
    option               effect
    -----------------------------------------------------------------------------------------------
        --progress WHEN  show progress on standard error (auto: on a terminal): auto, always, never
    -q, --quiet          leave out notes, advice and progress; warnings and the result remain
    -v, --verbose        add the placement of ranks, the profile, the price of each kind of op, all
                         advice, every link
    -h, --help           print this text

    $ stepsim --version
    stepsim 0.1.0 (*) (glob)
    libraries: hwloc *, sqlite3 * (glob)
    execution: * (glob)
    CUDA: * (glob)
