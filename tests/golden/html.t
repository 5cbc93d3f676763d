One page, complete in itself: nothing is fetched, the data is there, texts of the user are escaped.

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --html page.html > table.txt; grep -oE '(src|href)="[^"]*"' page.html | sort -u; grep -c '</html>' page.html; grep -oE '<h1>[^<]*' page.html
    > grep -oE 'id="(timeline|bars|roofline|memory|data|tip|keys|live)"' page.html | sort | tr '\n' ' '; grep -c '@import\|url(\|fetch(\|XMLHttpRequest\|<link rel="style' page.html
    > printf 'model: {preset: gpt2-124m}\n' > 'a<b>&c.yaml'; stepsim predict 'a<b>&c.yaml' --set cluster.system=dgx-h100 --html - | grep -c 'a<b>'
    href="data:,"
    1
    <h1>A step takes 2.40 s (90 % interval: 2.04 s to 2.81 s).
    id="bars" id="data" id="keys" id="live" id="memory" id="roofline" id="timeline" id="tip" 0
    0
    [1]

The timeline's data are the spans of the trace, in differences that add up to the step; memory and links are the trace's counters:

    $ cat > same.py <<'END'
    > import json, re, sys
    > data = json.loads(re.search(r'id="data">(.*?)</script>', open('page.html').read(), re.S)[1])
    > slices = [e for e in json.load(open('trace.json'))['traceEvents'] if e['ph'] == 'X' and e['cat'] != 'wait']
    > side = data['sides'][0]; actor = side['actors'][0]; ends = []; busy = 0
    > for lane in actor['lanes']:
    >     t = 0
    >     for i in range(0, len(lane['spans']), 4):
    >         op, gap, wait, lasts = lane['spans'][i:i + 4]; t += gap + wait + lasts; busy += wait + lasts; ends.append(t)
    > points = [e for e in json.load(open('trace.json'))['traceEvents'] if e['ph'] == 'C' and e['name'] == 'memory in use']
    > print(len(ends) == len(slices) == len(actor['ops']) / 4, max(ends) == side['step_ns'], abs(busy / sum(e['dur'] for e in slices) / 1e3 - 1) < 1e-4, len(points) == len(actor['memory_KiB']) / 2, len(data['looks']) < 200)
    > print(sum(actor['memory_KiB'][1::2]) == round(points[-1]['args']['bytes'] / 1024), data['roofs'], sorted(data['points'][0]))
    > END
    > stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --html page.html --trace trace.json -q > table.txt; python3 same.py
    True True True True True
    True {'dtype': 'bf16', 'matrix': 989400000000000.0, 'memory': 3350000000000.0} ['bytes', 'class', 'flop', 'measured_s', 'time_s']

A plan that does not fit says so first; the time comes behind. Shares are of the device's memory:

    $ big="--set cluster.nodes=2 --set train.recompute=none"; stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml $big --set train.micro_batch=4 --html big.html -q > table.txt; grep -oE '<title>[^<]*|<h1>[^<]*|^<p>[^<]*' big.html
    > stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set train.recompute=none --html - -q | grep -oE '<h1>[^<]*|It fits[^.]*[^:]*'
    <title>llama3-8b on 16 ranks: 7.38 s a step, does not fit in memory - stepsim
    <h1>Does not fit: a rank needs 158 GiB, the device has 79.6 GiB (77.9 GiB short; largest: activations 145 GiB).
    <p>If it had the memory, a step would take 7.38 s (90 % interval: 6.30 s to 8.64 s).
    <p>With more memory: compute hides 90 % of communication: 38.5 ms of 381 ms are exposed, 0.5 % of the step. MFU 54.8 %. Bottleneck: compute: gemm 67 % of the step.
    <h1>A step takes 1.95 s (90 % interval: 1.66 s to 2.28 s).
    It fits in memory: a rank needs 79.1 GiB of 79.6 GiB, 572 MiB are free; it fills 99.3 % of the memory; a search for plans stays within 90 % where it can. Bottleneck

A pipeline's page stays small: what is more than a browser draws op by op is drawn in blocks, the stage that ends last is whole:

    $ stepsim predict $ROOT/configs/pp-llama3-70b-64xh100.yaml --html page.html -q > table.txt; test $(wc -c < page.html) -lt 6000000 && grep -oE '[0-9]+ of the [0-9]+ stages [^.]*' page.html
    2 of the 4 stages are drawn op by op, the others in blocks of a micro-batch

A sweep's page has its curves, what judges them, and the table; a curve that is 0 throughout is left out:

    $ stepsim sweep $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --vary cluster.nodes=2,4,8,16 --html sweep.html > table.txt; grep -oE '<h1>[^<]*|class="sub">[^<]*|<text class="(title|key)[^>]*>[^<]*' sweep.html | sed 's/.*>//'; grep -c '<tr>' sweep.html
    > stepsim sweep $ROOT/configs/ddp-tiny.yaml --set cluster.system=dgx-h100 --set cluster.gpus_per_node=1 --vary train.micro_batch=1,2,4 --html - | grep -oE 'class="title[^>]*>[^<]*' | sed 's/.*>//'
    Most tokens/s with cluster.nodes = 8: 438 k tokens/s, 2.40 s a step on 64 ranks.
    $ROOT/configs/llama3-8b-fsdp-64xh100.yaml: 4 combinations, 3 predicted.
    Predicted step time
    The band is the 90 % interval.
    Predicted tokens/s
    predicted
    perfect scaling
    Predicted exposed communication of a step
    Predicted memory of a device
    predicted
    capacity
    5
    Predicted step time
    Predicted tokens/s
    Predicted memory of a device

What does not fit is hollow in a sweep's curves, and its heading never names it, nor what a search would leave out:

    $ stepsim sweep $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --vary cluster.nodes=2,4 --vary train.recompute=none,full --html sweep.html > table.txt; grep -oE '<h1>[^<]*|class="sub">[^<]*' sweep.html; grep -oE '<text class="key[^>]*>[^<]*' sweep.html | sed 's/.*>//' | head -n 3; grep -c 'class="hollow".*<title>.*, does not fit in memory' sweep.html
    > stepsim sweep $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --vary cluster.nodes=2,4,8 --set train.recompute=none --html - | grep -oE '<h1>[^<]*'
    > stepsim sweep $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --vary cluster.nodes=2,4 --set train.recompute=none --html - | grep -oE '<h1>[^<]*'
    <h1>Most tokens/s with cluster.nodes = 4, train.recompute = full: 221 k tokens/s, 4.75 s a step on 32 ranks.
    class="sub">$ROOT/configs/llama3-8b-fsdp-64xh100.yaml: 4 combinations, 4 predicted; 2 too large for the memory (2 of them may fit all the same).
    train.recompute=none
    train.recompute=full
    does not fit in memory
    8
    <h1>None of this leaves 10 % of the memory free, as a search for plans does. Of what fits, most tokens/s with cluster.nodes = 8: 539 k tokens/s, 1.95 s a step on 64 ranks.
    <h1>None of this fits. With cluster.nodes = 4 a rank needs 81.4 GiB, the device has 79.6 GiB (1.78 GiB short; largest: activations 72.4 GiB). It may fit all the same: one in ten published peaks is over 10 % lower than predicted.

Pictures without a browser; without rsvg-convert there is no PNG, and one line says so:

    $ PATH=/nonexistent $(command -v stepsim) sweep $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --vary cluster.nodes=4,8 --plot curve.png > table.txt
    > stepsim sweep $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --vary cluster.nodes=4,8 --plot curve.png > table.txt 2>&1; if command -v rsvg-convert > /dev/null; then head -c 4 curve.png | tail -c 3; else printf PNG; fi
    stepsim: curve.png: PNG needs rsvg-convert (Debian, Ubuntu: librsvg2-bin; Fedora: librsvg2-tools), and it is not here; a name that ends in .svg needs nothing
    PNG

A comparison's page: who is ahead and how surely, bars with intervals, both tables, sources:

    $ stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100,dgx-a100 --fixed-plan --html compare.html > table.txt; grep -oE '<h1>[^<]*|<text class="title[^>]*>[^<]*|<h2>[^<]*|<summary>[^<]*' compare.html | sed 's/.*>//'; grep -c '<rect fill' compare.html
    > stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100 --gpus 1 --fixed-plan --html - 2>&1 | grep -oE '<h1>[^<]*'
    dgx-h100 is ahead of dgx-a100: 1.14 times the tokens per dollar of rent, at 2.28 times the speed. The 90 % intervals of their costs overlap: the order is not sure.
    Predicted time for the tokens, 90 % interval
    What renting costs, 90 % interval of the time
    What owning costs, 90 % interval of the time
    Speed and memory
    Time, energy and money
    Who is ahead
    Sources of the numbers
    6
    <h1>Nothing fits on any of the systems. On dgx-h100 a rank needs 143 GiB, the device has 79.6 GiB (63.0 GiB short; largest: optimizer state 59.8 GiB).

A search's page: the best plan, the front, the config:

    $ COLUMNS=999 stepsim plan $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --gpus 8 --html plan.html > table.txt; grep -oE '<h1>[^<]*|<text class="(title|key)[^>]*>[^<]*|<h2>[^<]*|<summary>[^<]*' plan.html | sed 's/.*>//'
    > head -n 1 table.txt; grep -oE 'class="sub">[^<]*' plan.html
    The best plan: dp 8 fsdp mb 1 prefetch 2 kept; 15.7 s a step, 69.1 GiB of memory.
    Plans: step time and memory
    Pareto front, lettered as in its table
    best plans, numbered as in the table
    the config's own
    The best plans
    Time and memory
    The best plan's config, with every default (--write writes the config alone)
    llama3-8b, 128 sequences of 8192 tokens a step, on 8 x NVIDIA H100 SXM5 80GB (NVIDIA DGX H100): plans, best first
    class="sub">llama3-8b, 128 sequences of 8192 tokens a step, on 8 x NVIDIA H100 SXM5 80GB (NVIDIA DGX H100): plans, best first

What a chart leaves out is in its key; where no plan fits, the heading says what is missing:

    $ stepsim sweep $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --vary cluster.nodes=8,16 --vary parallel.strategy=ddp,zero1,zero2,fsdp --vary train.recompute=none,full --vary train.micro_batch=1,2 --html - | grep -oE 'The first [^<]*' | sort -u
    > sed 's/strategy: fsdp/strategy: ddp/' $ROOT/configs/llama3-8b-fsdp-64xh100.yaml > own.yaml; stepsim plan own.yaml --set parallel.tensor=1 --set parallel.context=1 --set parallel.pipeline=1 --plot - | grep -oE 'not drawn[^<]*'
    > stepsim plan $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --gpus 1 --html - | grep -oE '<h1>[^<]*'
    The first 12 of 16 lines; the table has the others.
    not drawn: the config's own, 2.49 s and 151 GiB, which does not fit
    <h1>No plan fits. With the one that needs least a rank needs 139 GiB, the device has 79.6 GiB (58.9 GiB short; largest: optimizer state 59.8 GiB).
