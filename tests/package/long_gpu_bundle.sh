#!/usr/bin/env bash
# Makes the archive for GPU machines and rehearses it: tests/package/long_gpu_bundle.sh [--made]. The machine is a tree
# with glibc, a shell and Python, and a user who is nobody: no toolkit, compiler, MPI or network. CUDA's libraries are
# the tests' doubles where PyTorch's wheels have the real ones. Prints each part's verdict. As root (chroot).
# --made: with the archive that is there.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] || { echo 'skipped: not root' && exit; }
[ -n "$(bash scripts/find_cuda.sh flags)" ] || { echo 'skipped: no CUDA here' && exit; }
[ "${1:-}" = --made ] || make -s gpu-bundle CUDA_ARCHS="${CUDA_ARCHS:-80}"
doubles=build/release/doubles
make -s $doubles/{libcudart.so.13,libcublasLt.so.13,libcudnn.so.9,libnccl.so.2,libnvidia-ml.so.1}
archive=$(ls -t build/stepsim-gpu-*.tar.xz | head -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/tree

# Nothing of NVIDIA's, and no double, travels.
! tar -tf "$archive" | grep -E '/lib(cuda|cublas|cudnn|nccl|nvidia)[^/]*\.so|doubles'
[ "$(stat -c %s "$archive")" -le $((40 << 20)) ]

add() { # programs and libraries, with what they need, under their own names
	local path
	for path in "$@"; do
		[ -e "$path" ] || path=$(type -P "$path")
		cp -L --parents "$path" "$tree"
		ldd "$path" 2>/dev/null | { grep -oE '/[^ ]+' || true; } | while read -r path; do
			[ -e "$tree$path" ] || cp -L --parents "$path" "$tree"
		done || true # a script has no libraries
	done
}
mkdir -p "$tree"/{proc,dev,sys,tmp,home,doubles,bin,usr/bin,etc}
add bash env cat cut date dirname basename find free getconf grep head hostname ls lscpu mkdir mktemp mv nproc paste \
	rm sed sleep sort stat tail tar tee timeout tr true uname uniq wc xz awk ln
ln -sf "$(type -P bash)" "$tree/bin/sh"
echo 'nobody:x:65534:65534::/home:/bin/sh' >"$tree/etc/passwd"
python=$(readlink -f /usr/bin/python3)
if [ -x "$python" ]; then
	add "$python"
	ln -s "$(basename "$python")" "$tree/usr/bin/python3"
	mkdir -p "$tree/usr/lib"
	cp -R "/usr/lib/$(basename "$python")" "$tree/usr/lib/"
	add "/usr/lib/$(basename "$python")"/lib-dynload/*.so
fi
wheels=$tree/usr/local/lib/$(basename "$python")/dist-packages/nvidia
mkdir -p "$wheels"/{cu13,cudnn,nccl}/lib
cp $doubles/lib{cudart,cublasLt}.so.13 "$wheels/cu13/lib"
cp $doubles/libcudnn.so.9 "$wheels/cudnn/lib"
cp $doubles/libnccl.so.2 "$wheels/nccl/lib"
cp $doubles/libnvidia-ml.so.1 "$tree/doubles" # the driver's
tar -C "$tree/home" -xf "$archive"
top=/home/$(basename "$archive" .tar.xz)
chmod 1777 "$tree/tmp" "$tree/home"

# A PMIx of another version: nothing of it may be loaded.
other=$tree/usr/lib/x86_64-linux-gnu/pmix2/lib/pmix
mkdir -p "$other"
echo 'no library' >"$other/pmix_mca_pcompress_zlib.so"

code=0
unshare -mn sh -c 'ip link set lo up && for folder in proc dev sys; do mount --rbind "/$folder" "$1/$folder"; done
	shift && exec chroot "$@"' sh "$tree" \
	--userspec=65534:65534 "$tree" /usr/bin/env -i HOME=/home PATH=/usr/bin:/bin BUDGET_S="${BUDGET_S:-520}" \
	LD_LIBRARY_PATH=/doubles "$(type -P bash)" -c "cd /home && bash $top/gpu_check.sh" ||
	code=$?
results=$tree/home/stepsim-gpu-results
cat "$results/summary.md"
if [ $code -ne 0 ]; then
	grep '| failed |' "$results/summary.md" || true
	tail -n 20 "$results"/*.log
	exit $code
fi
[ ! -x "$python" ] || [ -s "$results/results.json" ]
grep -q '| run: ddp-tiny-np2-bf16 | passed |' "$results/summary.md" # by the archive's mpirun
! grep 'no mpirun here' "$results/summary.md"
! grep -i pmix "$results"/*.log
