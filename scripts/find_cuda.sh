#!/usr/bin/env bash
# Prints what there is of CUDA, for the Makefile and for people:
#   find_cuda.sh flags   preprocessor and linker flags for cudart, cuBLASLt, cuDNN and NCCL; nothing when one of
#                        them is missing
#   find_cuda.sh nvcc    the kernels' compiler
#   find_cuda.sh archs   the compute capabilities of the GPUs here, for CUDA_ARCHS: "80 90"; nothing without a GPU.
#                        For a GPU that is newer than nvcc, the newest that nvcc knows.
#   find_cuda.sh         one line that says what was found, what was not
set -u

root=""
for candidate in "${CUDA_HOME:-}" /usr/local/cuda /usr/lib/cuda /opt/cuda /usr; do
	if [ -n "$candidate" ] && [ -e "$candidate/include/cuda_runtime_api.h" ]; then
		root=$candidate
		break
	fi
done

# The first of the toolkit's and the system's folders that holds the file.
find_in() {
	local name=$1 folder
	shift
	for folder in "$@"; do
		[ -e "$folder/$name" ] && { printf '%s' "$folder"; return 0; }
	done
	return 1
}
multiarch=$(gcc -print-multiarch 2>/dev/null || true)
includes=("$root/include" /usr/local/include /usr/include "/usr/include/$multiarch")
libraries=("$root/lib64" "$root/lib" /usr/local/lib "/usr/lib/$multiarch" /usr/lib64 /usr/lib)

# "MAJOR.MINOR.PATCH" from the #defines of a version header.
version_of() {
	local file=$1
	shift
	awk -v names="$*" '
		BEGIN { n = split(names, want, " ") }
		$1 == "#define" { value[$2] = $3 }
		END { for (i = 1; i <= n; i++) printf "%s%s", (i > 1 ? "." : ""), value[want[i]] }' "$file" 2>/dev/null
}

found="" missing="" flags="" folders=""
component() {
	local label=$1 header=$2 library=$3 where_h where_l
	if [ -n "$root" ] && where_h=$(find_in "$header" "${includes[@]}") &&
		where_l=$(find_in "lib$library.so" "${libraries[@]}"); then
		found="$found${found:+, }$label"
		case " $folders " in *" $where_h $where_l "*) ;; *)
			flags="$flags -isystem $where_h -L$where_l -Wl,-rpath,$where_l"
			folders="$folders $where_h $where_l" ;;
		esac
		flags="$flags -l$library"
	else
		missing="$missing${missing:+, }$label"
	fi
}
cuda_version=""
if [ -n "$root" ]; then
	number=$(awk '$1 == "#define" && $2 == "CUDART_VERSION" { print $3 }' "$root/include/cuda_runtime_api.h" \
		2>/dev/null)
	[ -n "$number" ] && cuda_version=" $((number / 1000)).$((number % 1000 / 10))"
fi
component "CUDA runtime$cuda_version" cuda_runtime_api.h cudart
component "cuBLASLt" cublasLt.h cublasLt
cudnn_h=$(find_in cudnn_version.h "${includes[@]}" 2>/dev/null) &&
	cudnn=" $(version_of "$cudnn_h/cudnn_version.h" CUDNN_MAJOR CUDNN_MINOR CUDNN_PATCHLEVEL)" || cudnn=""
component "cuDNN$cudnn" cudnn.h cudnn
nccl_h=$(find_in nccl.h "${includes[@]}" 2>/dev/null) &&
	nccl=" $(version_of "$nccl_h/nccl.h" NCCL_MAJOR NCCL_MINOR NCCL_PATCH)" || nccl=""
component "NCCL$nccl" nccl.h nccl

nvcc=""
[ -n "$root" ] && [ -x "$root/bin/nvcc" ] && nvcc=$root/bin/nvcc
[ -n "$nvcc" ] || nvcc=$(command -v nvcc) || missing="$missing${missing:+, }nvcc"
if [ "${1:-}" = nvcc ]; then
	printf '%s\n' "$nvcc"
	exit 0
fi
if [ "${1:-}" = archs ]; then
	mapfile -t known < <("${nvcc:-nvcc}" --list-gpu-arch 2>/dev/null | sed -n 's/^compute_//p' | sort -n)
	for arch in $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d '. ' |
		grep -E '^[0-9]+$' | sort -nu); do
		at=$arch
		for one in ${known[@]+"${known[@]}"}; do
			[ "$one" -gt "$arch" ] || at=$one
		done
		echo "$at"
	done | uniq | paste -sd ' '
	exit 0
fi
if [ "${1:-}" = flags ]; then
	[ -z "$missing" ] && printf '%s\n' "${flags# }"
	exit 0
fi
printf 'found: %s%s\n' "${found:-none of CUDA}" "${missing:+; not found: $missing}"
