#!/usr/bin/env bash
# The man page and the completions name every command and option of --help, and shells that are here accept them:
# tests/package/test_generated.sh. The last line is "N passed, N failed".
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"
export PATH=$PWD/build/release:$PATH

COLUMNS=999 stepsim --help >"$scratch/help" || exit 1
mapfile -t commands < <(sed -n 's/^ *stepsim \([a-z]\+\) .*\[options\]$/\1/p' "$scratch/help")
for command in "${commands[@]}"; do COLUMNS=999 stepsim "$command" --help; done >>"$scratch/help"
mapfile -t options < <(grep -oE '^(-.,|   ) --[a-z_-]+' "$scratch/help" | grep -oE -- '-.$|--.*' | sort -u)
for kind in man bash zsh fish; do
	stepsim generate $kind >"$scratch/$kind" || exit 1
done

# Prints the words of the list that the page lacks, and fails if there are any.
all_in() { # file, words
	local file=$1 word lacking=()
	shift
	for word in "$@"; do
		grep -qwE -- "$word" "$file" || lacking+=("$word")
	done
	echo "not in it: ${lacking[*]-}"
	[ ${#lacking[@]} -eq 0 ]
}

check 'the help has commands and options' test ${#commands[@]} -ge 12 -a ${#options[@]} -ge 40
sed -E 's/\\f[BIR]//g; s/\\-/-/g' "$scratch/man" >"$scratch/man.text"
check 'man page: every command' all_in "$scratch/man.text" "${commands[@]/#/stepsim }"
check 'man page: every option' all_in "$scratch/man.text" "${options[@]}"
check 'man page: every variable of the reference' all_in "$scratch/man.text" $(
	sed -n '/^## Environment/,/^## /p' docs/reference.md | cut -d'|' -f2 | grep -oE '[A-Z_]{3,}'
)
for kind in bash zsh; do
	check "$kind: every command" all_in "$scratch/$kind" "${commands[@]}"
	check "$kind: every option" all_in "$scratch/$kind" "${options[@]}"
done
check 'fish: every command' all_in "$scratch/fish" "${commands[@]/#/-a }"
check 'fish: every option' all_in "$scratch/fish" "${options[@]/#--/-l }"

if command -v groff >/dev/null; then
	check 'man page: no warning of groff' \
		sh -c '! LC_ALL=C.UTF-8 groff -ww -b -man -Tutf8 -rLL=100n "$0" 2>&1 >/dev/null | grep .' "$scratch/man"
fi

# What bash offers behind the words of a command line, the last of which is unfinished.
offers() {
	bash -c 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _stepsim; echo "${COMPREPLY[*]}"' \
		"$scratch/bash" "$@"
}
expect() { # what is offered, words
	local expected=$1
	shift
	check "bash: $*" test "$(cd "$scratch" && offers "$@")" = "$expected"
}
expect 'plan' stepsim pla
expect '--exhaustive' stepsim plan --exh
expect '' stepsim predict --exh
expect 'gpt2-124m' stepsim predict --model gpt2-12
expect 'always' stepsim predict c.yaml --progress al
expect 'never' stepsim predict c.yaml --progress = n
expect 'reduce_scatter' stepsim bench -q r
expect 'cuda' stepsim --backend cu
expect 'help' stepsim predict --json hel
expect '--smi' stepsim --progress never topo --sm

command -v zsh >/dev/null && check 'zsh reads its completion' zsh -n "$scratch/zsh"
if command -v fish >/dev/null; then
	export HOME=$scratch XDG_CONFIG_HOME=$scratch
	fish_offers() { # text, words in the order of fish
		[ "$(fish --no-config -c "source $scratch/fish; complete -C '$1'" | cut -f1 | paste -sd ' ')" = "$2" ]
	}
	check 'fish: a command' fish_offers 'stepsim pla' plan
	check 'fish: an option of one command' fish_offers 'stepsim plan --exh' --exhaustive
	check 'fish: not of another' fish_offers 'stepsim predict --exh' ''
	check 'fish: words' fish_offers 'stepsim bench --backend cu' cuda
fi

verdicts
