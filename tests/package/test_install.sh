#!/usr/bin/env bash
# `make install` into a folder gives a program that finds its catalogue and plug-in, and `make uninstall` leaves
# nothing: tests/package/test_install.sh. setup.sh tells a user without any tool three ways. The last line is
# "N passed, N failed".
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"

says() { # text, command
	local text=$1
	shift
	"$@" 2>&1 | tee /dev/stderr | grep -qF -- "$text"
}

to=(CUDA=0 "DESTDIR=$scratch/root" PREFIX=/opt/stepsim)
at=$scratch/root/opt/stepsim
check 'make install' make -s install "${to[@]}"
check 'its program finds the catalogue' says 'dgx-h100' env -C / "$at/bin/stepsim" list systems
if [ -e build/release/libstepsim_exec.so ]; then
	check 'and its plug-in' says 'execution: Open MPI' env -C / "$at/bin/stepsim" --version
fi
for file in man/man1/stepsim.1 bash-completion/completions/stepsim zsh/site-functions/_stepsim \
	fish/vendor_completions.d/stepsim.fish doc/stepsim/README.md; do
	check "$file" test -s "$at/share/$file"
done
check 'make uninstall' make -s uninstall "${to[@]}"
check 'nothing is left' sh -c '! find "$0" -type f | grep .' "$scratch/root"

# A machine with a shell and none of the tools.
mkdir "$scratch/bin"
for tool in bash awk paste id cat dirname; do ln -s "$(command -v $tool)" "$scratch/bin/"; done
bare() { env -i PATH="$scratch/bin" bash scripts/setup.sh run; }
check 'setup.sh without tools: packages' says 'apt-get install gcc libc6-dev make' bare
check 'setup.sh without tools: conda-forge' says 'conda create -n stepsim -c conda-forge gcc make' bare
check 'setup.sh without tools: the tarball' says 'make dist' bare

# What packages hold runs on other machines: no command of that build takes this processor's instructions.
own_processor_alone() {
	make -n -B VARIANT=portable all tests >"$scratch/commands" 2>/dev/null
	grep -q 'gcc' "$scratch/commands" && ! grep -e '-march=native' "$scratch/commands"
}
check 'the portable build is for any processor' own_processor_alone

verdicts
