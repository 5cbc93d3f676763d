Tensor-parallel collectives beside the tiles of products: Megatron's habit (user buffers), off by a key; elsewhere on by one.

    $ cat > tp.yaml <<'EOF'
    > model: {preset: llama3-8b}
    > train: {stack: megatron-core, global_batch: 8, micro_batch: 1}
    > parallel: {tensor: 8, sequence_parallel: true}
    > cluster: {system: dgx-h100}
    > EOF
    > for overlap in true false; do for stack in megatron-core pytorch-ddp; do
    >   stepsim predict tp.yaml --set train.stack=$stack --set parallel.tensor_overlap=$overlap | grep 'exposed comm'; done; done
    > stepsim predict tp.yaml | grep 'exposed comm'
      exposed communication       53.6 ms        5.8 %
      exposed communication       37.1 ms        4.1 %
      exposed communication        410 ms       31.9 %
      exposed communication        400 ms       31.3 %
      exposed communication       53.6 ms        5.8 %
