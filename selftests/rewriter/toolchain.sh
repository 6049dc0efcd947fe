#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What nvcc makes of one program in each way it has: gsrewrite finds the PTX that says what the
# device runs, ptxas takes it, and relocatable programs run on the simulated GPU. toolchain.sh
# GSREWRITE DIRECTORY-OF-VGPU JIT
set -u
expected=
rewrite=$1 vgpu=$2 jit=$3
src=selftests/rewriter/program
. selftests/tap.sh
if ! command -v nvcc >/dev/null; then
	echo "1..1"
	echo "ok 1 - programs built by nvcc # SKIP no nvcc"
	exit 0
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp" "/dev/shm/toolchain-$$"' EXIT
cat >"$tmp/one.cu" <<'END'
__global__ void one(int *p, int n)
{
#ifdef __CUDA_ARCH__
	p[blockIdx.x] = n * 3 + __CUDA_ARCH__;
#endif
}
int main() { one<<<1, 1>>>(nullptr, 0); }
END

# what, nvcc's arguments and files; an nvcc of another version may lack the architecture or option
build() {
	local what=$1
	shift
	nvcc "$@" 2>"$tmp/err" && return
	if grep -qi 'unsupported gpu\|not supported\|unknown option\|not defined for option' \
		"$tmp/err"; then
		skip "$what" "$(head -n 1 "$tmp/err")"
	else
		ok 1 "$what: nvcc: $(head -n 1 "$tmp/err")"
	fi
	return 1
}
last=
# what, nvcc's arguments, the device, the target of the PTX or the reason why there is none
image() {
	local what=$1 args=$2 arch=$3 want=$4 out err
	if [ "$args" != "$last" ]; then
		last=
		# shellcheck disable=SC2086
		build "$what" $args "$tmp/one.cu" -o "$tmp/image" || return
		last=$args
	fi
	out=$("$rewrite" "$tmp/image" --arch "$arch" -o "$tmp/twins.ptx" 2>&1)
	err=$?
	case $want in
	sm_*)
		[ "$err" = 0 ] && grep -q "^\.target $want$" "$tmp/twins.ptx" &&
			ptxas -arch="$want" "$tmp/twins.ptx" -o /dev/null
		ok $? "$what: on sm_$arch PTX for $want" ;;
	*)
		[ "$err" = 2 ] && [[ $out == *"$want"* ]]
		ok $? "$what: on sm_$arch $want" ;;
	esac
	[ "$failed" = 0 ] || echo "# status $err $out"
}
image "a program" "-arch=sm_90" 90 sm_90
image "a program" "-arch=sm_90" 100 sm_90
image "an object" "-arch=sm_80 -c" 90 sm_80
for mode in none speed balance size; do
	image "all compressed for $mode" \
		"-arch=sm_90 -compress-mode=$mode -Xfatbin -compress-all -fatbin" 90 sm_90
done
image "-no-compress" "-arch=sm_90 -no-compress -fatbin" 90 sm_90
image "PTX" "-arch=sm_80 -ptx" 90 sm_80
image "machine code" "-arch=sm_90 -cubin" 90 "machine code only, no PTX"
image "machine code in a fat binary" "-gencode arch=compute_90,code=sm_90 -fatbin" 90 \
	"machine code only, no PTX"
image "-arch=all-major" "-arch=all-major -fatbin" 90 "PTX for sm_90, which is not there"
several="-fatbin -gencode arch=compute_75,code=[sm_75,compute_75]"
several="$several -gencode arch=compute_86,code=sm_86"
image "several" "$several -gencode arch=compute_90,code=[sm_90,compute_90]" 90 sm_90
image "several" "$several -gencode arch=compute_90,code=[sm_90,compute_90]" 75 sm_75
image "several" "$several -gencode arch=compute_90,code=[sm_90,compute_90]" 89 \
	"PTX for sm_86, which is not there"
image "sm_90 code of compute_75" \
	"-fatbin -gencode arch=compute_75,code=[sm_90,compute_75] \
	-gencode arch=compute_90,code=compute_90" 90 sm_75
exact="-fatbin -gencode arch=compute_90a,code=[sm_90a,compute_90a]"
exact="$exact -gencode arch=compute_80,code=[sm_80,compute_80]"
image "sm_90a and sm_80" "$exact" 90 sm_90a
image "sm_90a and sm_80" "$exact" 100 sm_80
family="-fatbin -gencode arch=compute_100f,code=[sm_100,compute_100f]"
family="$family -gencode arch=compute_75,code=compute_75"
image "family of sm_100" "$family" 103 sm_100f
image "family of sm_100" "$family" 120 sm_75
image "-dlto" "-gencode arch=compute_90,code=lto_90 -dc" 90 "link-time optimisation code"

# what NVRTC and nvJitLink give to programs
mkdir "$tmp/jit"
"$jit" "$tmp/jit" "$(dirname "$(readlink -f "$(command -v nvcc)")")/../lib64" >"$tmp/made"
jitted() { # file, the target of the PTX or the reason why there is none
	local out err
	if ! grep -q "^$1$" "$tmp/made"; then
		skip "$1" "not made"
		return
	fi
	out=$("$rewrite" "$tmp/jit/$1" --explain -o - 2>&1)
	err=$?
	case $2 in
	sm_*) [ "$err" = 0 ] && grep -q "^\.target $2$" <<<"$out" ;;
	*) [ "$err" = 2 ] && [[ $out == *"$2"* ]] ;;
	esac
	ok $? "$1: $2"
}
jitted nvrtc.ptx sm_80
jitted nvrtc.cubin "machine code only, no PTX"
jitted jitlink.cubin "machine code only, no PTX"
jitted jitlink.ptx sm_90

# what, nvcc's arguments: the units are found and joined, the twins assemble, the program gives the
# sum of the whole one
program() {
	local what=$1 args=$2 kernels sum
	# shellcheck disable=SC2086
	build "$what" $args -cudart shared $src/main.cu $src/other.cu $src/table.cu \
		-o "$tmp/program" || return
	kernels=$("$rewrite" "$tmp/program" --explain 2>&1)
	[ "$(grep -c ': tier ' <<<"$kernels")" = 2 ] && ! grep -q 'not in the module' <<<"$kernels"
	ok $? "$what: both kernels, with all they call"
	[ "$failed" = 0 ] || while read -r l; do echo "# $l"; done <<<"$kernels"
	sum=$(LD_LIBRARY_PATH=$vgpu VGPU_NAME=toolchain-$$ VGPU_CC=90 "$tmp/program" 2>&1)
	[ "$sum" = "$expected" ]
	ok $? "$what: runs on the simulated GPU: $sum"
}
# the same as one unit, whose PTX is nvcc's own
cat $src/table.cu $src/other.cu $src/main.cu >"$tmp/whole.cu"
nvcc -I$src -DWHOLE -arch=sm_90 -cudart shared "$tmp/whole.cu" -o "$tmp/whole" &&
	expected=$(LD_LIBRARY_PATH=$vgpu VGPU_NAME=toolchain-$$ "$tmp/whole" 2>&1)
[[ $expected == "sum "* ]]
ok $? "the program as one unit: $expected"
program "-rdc" "-arch=sm_90 -rdc=true"
program "-rdc, PTX alone" "-gencode arch=compute_90,code=compute_90 -rdc=true"
program "-rdc, two architectures, lines, not compressed" \
	"-gencode arch=compute_75,code=[sm_75,compute_75] \
	-gencode arch=compute_90,code=[sm_90,compute_90] -rdc=true -lineinfo -no-compress"
done_testing
