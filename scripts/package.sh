#!/usr/bin/env bash
# Packs build/portable: scripts/package.sh dist|deb|wheel|gpu-bundle (`make dist` and so on, which builds it first).
# dist: a relocatable tarball with every library that a machine with glibc alone lacks, Open MPI excepted.
# deb: a Debian package of this release. wheel: the program that predicts, for pip. gpu-bundle: an archive with the CUDA
# part, its tests, Open MPI and scripts/gpu_check.sh, for a GPU machine that nobody has prepared.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^#define STEPSIM_VERSION "\(.*\)"/\1/p' base/version.h)
machine=$(uname -m)
# Archives hold the time of the commit, so that one commit gives one archive.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH

stage() { # folder, prefix, whether with CUDA's part, its architectures
	rm -rf "$1"
	make -s VARIANT=portable CUDA="${3:-0}" ${4:+"CUDA_ARCHS=$4"} EXEC=1 DESTDIR="$PWD/$1" PREFIX="$2" install \
		>/dev/null
	strip --strip-unneeded "$1$2/bin/stepsim" "$1$2"/lib/stepsim/*.so
	chmod -R u=rwX,go=rX "$1"
}

# Copies beside the plug-in what the files need. glibc's own parts are the machine's, and what a pattern names.
open_mpi='libmpi.so.* libopen-*.so.* libevent*.so.* libpmix.so.*' # its parts belong together
cuda='libcuda* libcublas* libcudnn* libnccl* libnv* libstepsim_*'
add_libraries() { # patterns, folder, files
	local left=$1 folder=$2 name path pattern
	shift 2
	ldd "$@" | awk '$2 == "=>" { print $1, $3 }' | sort -u | while read -r name path; do
		for pattern in 'lib'{c,m,dl,pthread,rt,resolv}'.so.*' $left; do
			# shellcheck disable=SC2254 # a pattern it is
			case $name in $pattern) continue 2 ;; esac
		done
		install -m 644 -D "$path" "$folder/$name"
	done
}

# Prints the newest glibc that the files ask for, as 2.34.
glibc_of() {
	objdump -T "$@" 2>/dev/null | grep -oE 'GLIBC_2\.[0-9]+' | sort -Vu | tail -n 1 | cut -d_ -f2
}

make_dist() {
	local name=stepsim-$version-linux-$machine
	local top=build/dist/$name
	stage "$top" ""
	add_libraries "$open_mpi" "$top/lib/stepsim" "$top/bin/stepsim" "$top"/lib/stepsim/libstepsim_exec.so
	tar -C build/dist --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
		-czf "build/$name.tar.gz" "$name"
	echo "build/$name.tar.gz: glibc $(glibc_of "$top/bin/stepsim" "$top"/lib/stepsim/*) or newer"
}

# Open MPI's launcher and those parts of it that serve one machine: the others want libraries of networks, a batch
# system or ssh, without which the launcher gives up.
add_mpi() { # folder of the archive
	local to=$1/mpi from share part pmix
	from=$(ompi_info --path pkglibdir --parsable | cut -d: -f3)
	share=$(ompi_info --path pkgdatadir --parsable | cut -d: -f3)
	mkdir -p "$to/bin" "$to/parts" "$to/share" "$to/etc" "$to/pmix"
	install "$(readlink -f "$(command -v orterun)")" "$to/bin/orterun"
	install scripts/gpu_bundle/mpirun "$to/bin/mpirun"
	for part in "$from"/mca_*.so; do
		if ! grep -qE 'lib(uc[pst]|psm|fabric|ibverbs|oshmem|nl-|cuda)|not found' < <(ldd "$part"); then
			install -m 644 "$part" "$to/parts/"
		fi
	done
	rm -f "$to"/parts/mca_*_{rsh,slurm,flux,jsm,gridengine,simulator}.so
	pmix=$(ldd "$from/mca_pmix_ext3x.so" 2>/dev/null | awk '$1 ~ /^libpmix/ { print $3 }')
	pmix=${pmix:+$(dirname "$(readlink -f "$pmix")")/pmix}
	[ ! -d "$pmix" ] || install -m 644 -t "$to/pmix" "$pmix"/*.so
	cp "$share"/*.txt "$to/share/"
	strip --strip-unneeded "$to/bin/orterun" "$to"/parts/*.so
	add_libraries '' "$1/lib/stepsim" "$to/bin/orterun" "$to"/parts/*.so
	# What parts and libraries need of each other: the machine may have none, or another version. A library that
	# other programs of the machine need, as libstdc++, is not among them.
	mkdir -p "$to/lib"
	for part in "$1"/lib/stepsim/lib{mpi,open-,pmix,event,munge,hwloc,udev,mca_}*.so.* \
		"$1"/lib/stepsim/lib{gfortran,quadmath}.so.*; do
		[ ! -e "$part" ] || ln -s "../../lib/stepsim/$(basename "$part")" "$to/lib/"
	done
}

make_gpu-bundle() {
	local archs name top lib size
	archs=$(cat build/portable/cuda_archs)
	name=stepsim-gpu-$version-sm${archs// /-}-linux-$machine
	top=build/dist/$name lib=build/dist/$name/lib/stepsim
	stage "$top" "" 1 "$archs"
	mv "$top/share/stepsim/configs" "$top/configs"
	mv "$top/share/doc/stepsim" "$top/doc"
	rm -rf "$top/share" "$top/doc/docs"
	install -D -t "$lib/tests/gpu" build/portable/tests/gpu/test_cuda_*[a-z]
	rm -f "$lib"/tests/gpu/*.d
	strip --strip-unneeded "$lib"/tests/gpu/*
	install -m 644 -D -t "$top/tests/exec" tests/exec/tiny*.yaml # the tests of the device read them
	install -m 644 -D -t "$top/scripts" scripts/{gpu_check,env}.sh scripts/{gpu_results,compare_pytorch}.py
	install -m 644 -t "$top" scripts/gpu_bundle/{gpu_check.sh,env.sh,README.md}
	add_libraries "$cuda" "$lib" "$top/bin/stepsim" "$lib"/libstepsim_{exec,cuda}.so "$lib"/tests/gpu/*
	if command -v ompi_info >/dev/null && command -v orterun >/dev/null; then
		add_mpi "$top"
	else
		echo 'package: Open MPI 4 has no launcher here: the archive starts one rank alone' >&2
	fi
	bash scripts/find_cuda.sh >"$top/VERSIONS"
	glibc_of "$top/bin/stepsim" $(find "$lib" "$top/mpi" -type f \( -name '*.so*' -o -name 'test_*' \)) \
		>"$top/GLIBC"
	chmod -R u=rwX,go=rX "$top"
	tar -C build/dist --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
		-cf - "$name" | xz -T0 -6 >"build/$name.tar.xz"
	size=$(stat -c %s "build/$name.tar.xz")
	echo "build/$name.tar.xz: $((size >> 20)) MiB, glibc $(cat "$top/GLIBC") or newer, $(cat "$top/VERSIONS")"
	[ "$size" -le $((40 << 20)) ] || { echo 'package: more than 40 MiB' >&2 && return 1; }
}

make_wheel() {
	local top=build/wheel/tree program=build/wheel/tree/stepsim/program glibc
	rm -rf build/wheel
	mkdir -p "$top"
	cp -R python/pyproject.toml python/README.md python/stepsim "$top/"
	stage build/wheel/stage ""
	mkdir -p "$program/bin" "$program/share"
	cp build/wheel/stage/bin/stepsim "$program/bin/"
	cp -R build/wheel/stage/share/stepsim "$program/share/"
	add_libraries '' "$program/lib/stepsim" "$program/bin/stepsim"
	glibc=$(glibc_of "$program/bin/stepsim" "$program"/lib/stepsim/*)
	echo "$version" >"$top/VERSION"
	[ -e LICENSE ] && cp LICENSE "$top/"
	printf '[bdist_wheel]\nplat_name = manylinux_%s_%s\n' "${glibc/./_}" "$machine" >"$top/setup.cfg"
	python3 -m pip wheel -q --disable-pip-version-check --no-deps -w build "$top"
	ls build/stepsim-*.whl
}

make_deb() {
	local arch top=build/deb/stepsim depends recommends
	arch=$(dpkg --print-architecture)
	stage "$top" /usr
	# Debian's places: documents are packed, and the licence stands in the file copyright.
	rm -f "$top/usr/share/doc/stepsim/LICENSE"
	gzip -9nc "$top/usr/share/doc/stepsim/CHANGELOG.md" >"$top/usr/share/doc/stepsim/changelog.gz"
	rm "$top/usr/share/doc/stepsim/CHANGELOG.md"
	gzip -9n "$top/usr/share/man/man1/stepsim.1"
	mkdir -p "$top/DEBIAN" "$top/usr/share/zsh/vendor-completions"
	mv "$top/usr/share/zsh/site-functions/_stepsim" "$top/usr/share/zsh/vendor-completions/"
	rmdir "$top/usr/share/zsh/site-functions"
	sed "s/@DATE@/$(date -uRd "@$SOURCE_DATE_EPOCH")/; s/@VERSION@/$version/" scripts/deb/changelog |
		gzip -9n >"$top/usr/share/doc/stepsim/changelog.Debian.gz"
	cp scripts/deb/copyright "$top/usr/share/doc/stepsim/copyright"
	mkdir -p build/deb/shlibdeps/debian # dpkg-shlibdeps reads its file control
	printf 'Source: stepsim\n\nPackage: stepsim\nArchitecture: any\n' >build/deb/shlibdeps/debian/control
	shlibs() {
		(cd build/deb/shlibdeps && dpkg-shlibdeps -O --ignore-missing-info "$@" 2>/dev/null) |
			sed -n 's/^shlibs:Depends=//p'
	}
	depends=$(shlibs "../stepsim/usr/bin/stepsim")
	recommends=$(shlibs "../stepsim/usr/lib/stepsim/libstepsim_exec.so" | tr ',' '\n' | sed 's/^ //' |
		grep -E '^lib(openmpi|openblas)' | paste -sd ',' | sed 's/,/, /g')
	sed "s/@VERSION@/$version/; s/@ARCH@/$arch/; s/@DEPENDS@/$depends/; s/@RECOMMENDS@/openmpi-bin, $recommends/
		s/@SIZE@/$(du -sk "$top/usr" | cut -f1)/" scripts/deb/control >"$top/DEBIAN/control"
	(cd "$top" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$top/DEBIAN/md5sums"
	chmod -R u=rwX,go=rX "$top"
	dpkg-deb --root-owner-group --build "$top" "build/stepsim_${version}-1_$arch.deb" >/dev/null
	echo "build/stepsim_${version}-1_$arch.deb"
}

case ${1:-} in
dist | deb | wheel | gpu-bundle) "make_$1" ;;
*)
	echo 'usage: scripts/package.sh dist|deb|wheel|gpu-bundle' >&2
	exit 2
	;;
esac
