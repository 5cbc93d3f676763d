#!/usr/bin/env bash
# Packs build/portable: scripts/package.sh dist|deb|wheel (`make dist` and so on, which builds it first).
# dist: a relocatable tarball with every library that a machine with glibc alone lacks, Open MPI excepted.
# deb: a Debian package of this release. wheel: the program that predicts, for pip.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^#define STEPSIM_VERSION "\(.*\)"/\1/p' base/version.h)
machine=$(uname -m)
# Archives hold the time of the commit, so that one commit gives one archive.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH

stage() { # folder, prefix
	rm -rf "$1"
	make -s VARIANT=portable CUDA=0 EXEC=1 DESTDIR="$PWD/$1" PREFIX="$2" install >/dev/null
	strip --strip-unneeded "$1$2/bin/stepsim" "$1$2"/lib/stepsim/*.so
	chmod -R u=rwX,go=rX "$1"
}

# Copies beside the plug-in what the files need. glibc's own parts and Open MPI, whose parts belong together, are the
# machine's.
add_libraries() { # folder, files
	local folder=$1 name path
	shift
	ldd "$@" | awk '$2 == "=>" { print $1, $3 }' | sort -u | while read -r name path; do
		case $name in
		libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libresolv.so.*) ;;
		libmpi.so.* | libopen-*.so.* | libevent*.so.* | libpmix.so.*) ;;
		*) install -m 644 -D "$path" "$folder/$name" ;;
		esac
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
	add_libraries "$top/lib/stepsim" "$top/bin/stepsim" "$top"/lib/stepsim/libstepsim_exec.so
	tar -C build/dist --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
		-czf "build/$name.tar.gz" "$name"
	echo "build/$name.tar.gz: glibc $(glibc_of "$top/bin/stepsim" "$top"/lib/stepsim/*) or newer"
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
	add_libraries "$program/lib/stepsim" "$program/bin/stepsim"
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
	mkdir -p build/deb/work/debian # dpkg-shlibdeps reads its file control
	printf 'Source: stepsim\n\nPackage: stepsim\nArchitecture: any\n' >build/deb/work/debian/control
	shlibs() {
		(cd build/deb/work && dpkg-shlibdeps -O --ignore-missing-info "$@" 2>/dev/null) |
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
dist | deb | wheel) "make_$1" ;;
*)
	echo 'usage: scripts/package.sh dist|deb|wheel' >&2
	exit 2
	;;
esac
