#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vgpu's runtime library under a program that nvcc built for NVIDIA's: vgpu-rt (here) and
# vgpu-rt-program (next to it), and so on
set -u
here=$(cd "$(dirname "$0")" && pwd)
program=$here/$(basename "$0")-program
if ! [ -x "$program" ]; then
	echo "1..1"
	echo "ok 1 - a program built by nvcc -cudart shared # SKIP no nvcc"
	exit 0
fi
export VGPU_NAME=vgpu-test-rt-$$ VGPU_SM_THREADS=512 VGPU_MPS=1 LD_LIBRARY_PATH=$here/../vgpu
[ "$(basename "$0")" != vgpu-rt-devices ] || export VGPU_DEVICES=2 CUDA_VISIBLE_DEVICES=0,1
trap 'rm -f "/dev/shm/$VGPU_NAME" "/dev/shm/$VGPU_NAME.1"' EXIT
"$program"
