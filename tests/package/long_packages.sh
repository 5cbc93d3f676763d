#!/usr/bin/env bash
# Makes a package and tries it: tests/package/long_packages.sh dist|wheel|deb. dist: as root, in a tree with glibc
# alone. wheel: in a fresh virtual environment (needs PyPI or its cache). deb: unpacked, and by lintian where it is.
set -euo pipefail
cd "$(dirname "$0")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
make -s "$1"
asks=(predict --model llama3-8b --system dgx-h100 --gpus 64)

case $1 in
dist)
	tar -C "$scratch" -xzf "$(ls -t build/stepsim-*.tar.gz | head -n 1)" --transform 's,^[^/]*,root/stepsim,'
	if [ "$(id -u)" = 0 ] && [ "$(uname -m)" = x86_64 ]; then
		libraries=$(ldconfig -p | awk '/libc\.so\.6.*x86-64/ { print $NF; exit }' | xargs dirname)
		install -D /lib64/ld-linux-x86-64.so.2 "$scratch/root/lib64/ld-linux-x86-64.so.2"
		for name in libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2; do
			install -D "$libraries/$name" "$scratch/root/lib/x86_64-linux-gnu/$name"
		done
		mkdir "$scratch/root/proc"
		# The loader reads /proc/self/exe to find what lies beside the program.
		unshare -m sh -c 'mount --bind /proc "$1/proc" && shift && exec chroot "$@"' sh "$scratch/root" \
			"$scratch/root" /stepsim/bin/stepsim "${asks[@]}"
	fi
	"$scratch/root/stepsim/bin/stepsim" "${asks[@]}" >/dev/null
	! ldd "$scratch/root/stepsim/bin/stepsim" | grep 'not found'
	;;
wheel)
	python3 -m venv "$scratch/venv"
	"$scratch/venv/bin/pip" install -q --no-index "$(ls -t build/stepsim-*.whl | head -n 1)"
	cp tests/python/test_stepsim.py "$scratch/"
	cd "$scratch"
	env -i HOME="$scratch" venv/bin/python test_stepsim.py
	env -i venv/bin/stepsim "${asks[@]}" >/dev/null
	env -i venv/bin/python -m stepsim --version
	;;
deb)
	file=$(ls -t build/stepsim_*.deb | head -n 1)
	dpkg-deb -x "$file" "$scratch/root"
	"$scratch/root/usr/bin/stepsim" "${asks[@]}" >/dev/null
	dpkg-deb -I "$file"
	# The package is not uploaded to Debian, and closes no bug there.
	if command -v lintian >/dev/null; then
		lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$file"
	fi
	;;
*) exit 2 ;;
esac
