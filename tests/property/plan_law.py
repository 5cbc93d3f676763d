"""No plan that `stepsim plan` looked at is better than its best, by `predict` of its own config; and `predict` gives
what `plan` said of it: python3 tests/property/plan_law.py. The last line is "N passed, N failed"."""
import json
import subprocess
import sys
import tempfile

STEPSIM = 'build/release/stepsim'
SEARCHES = [('configs/llama3-8b-fsdp-64xh100.yaml', 16), ('configs/llama3-8b-fsdp-64xh100.yaml', 64),
            ('configs/pp-gpt3-175b-384xa100.yaml', 384), ('configs/pp-llama3-70b-64xh100.yaml', 64),
            ('configs/finetune-llama2-13b.yaml', 8), ('configs/ep-mixtral-8x7b-64xh100.yaml', 64)]
APART = 0.01  # what is searched with folded steps is priced again in full (sim/engine/fold.h)


def run(*arguments):
    return json.loads(subprocess.run([STEPSIM, *arguments, '--json', '-'], check=True, capture_output=True).stdout)


def predicted(config):
    with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
        json.dump(config, file)
        file.flush()
        return run('predict', file.name)['prediction']


def check(config, gpus):
    """Returns what is wrong, for each plan of the table."""
    results = run('plan', config, '--gpus', str(gpus))['results']
    best, wrong = results[0]['tokens_per_s'], []
    for i, result in enumerate(results):
        again = predicted(result['config'])
        apart = again['step_time_s'] / result['step_time_s'] - 1
        if abs(apart) > APART:
            wrong.append(f'plan {i}: {result["step_time_s"]:.6g} s, predicted {again["step_time_s"]:.6g} s')
        if again['tokens_per_s'] > best * (1 + APART) and again['memory']['fits']:
            wrong.append(f'plan {i}: {again["tokens_per_s"]:.6g} tokens/s, the best has {best:.6g}')
    return len(results), wrong


def main():
    passed = failed = 0
    for config, gpus in SEARCHES:
        try:
            count, wrong = check(config, gpus)
        except subprocess.CalledProcessError as error:
            count, wrong = 0, [error.stderr.decode().strip()]
        passed, failed = passed + (not wrong), failed + bool(wrong)
        print(f'{"FAILED" if wrong else "passed"} {config} on {gpus} GPUs, {count} plans')
        for line in wrong:
            print('    ' + line)
    print(f'{passed} passed, {failed} failed')
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
