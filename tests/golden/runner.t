The runner of these files. An update never writes the end of a command that was stopped: its text stays.
    $ printf '    $ sleep 30\n    its text\n    $ echo fresh\n    old\n' >case.t
    > STEPSIM_GOLDEN_TIMEOUT=1 bash $ROOT/tests/golden/run.sh --update case.t
    > echo "exit code $?"
    > sed 's/^    /| /' case.t
    golden: case.t:1: stopped after 1 s: sleep 30
    0 passed, 2 failed
    exit code 1
    | $ sleep 30
    | its text
    | $ echo fresh
    | fresh
