# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Completion for gschedctl: commands, options, groups, devices, and the files that group set and device set write.

# _gschedctl_names COMMAND...: the first column of what gschedctl prints
_gschedctl_names() {
	"$ctl" "${where[@]}" "$@" 2>/dev/null | awk 'NR > 1 { print $1 }'
}

_gschedctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} ctl=${COMP_WORDS[0]}
	local i word words=() where=() own='' names='' value=''
	local group_files='capsm.max= capsm.min= capsm.reserve= gpu.weight= gpu.priority= gpu.band= gpu.latency_target_us= memory.max= cgroup= procs= owner='
	local device_files='mode= policy= plan= switch_us= max_overhead= max_slowdown= clients_max='

	COMPREPLY=()
	# the words of the command, without options and their values; bash has "a=b" in three
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		-[dsbgno] | --device | --socket | --backend | --group | --interval | --count | --output | --limit-by | --dispatch | --workers | --class | --margin | --ttl)
			i=$((i + 1))
			[ "${COMP_WORDS[i]}" != = ] || i=$((i + 1))
			[[ $i -ge $COMP_CWORD || ! $word =~ ^-(d|s|b|-device|-socket|-backend)$ ]] || where+=("$word" "${COMP_WORDS[i]}")
			;;
		--)
			# a program and its arguments
			if [ "${words[0]}" = run ]; then
				[ "$((COMP_CWORD - i))" = 1 ] && own=-c || own=-f
				mapfile -t COMPREPLY < <(compgen "$own" -- "$cur")
				return
			fi
			;;
		-*) ;;
		*) words+=("$word") ;;
		esac
	done
	[ "$cur" != = ] && [ "$prev" != = ] || value=1
	[ "$cur" != = ] || cur=
	[ "$prev" != = ] || prev=${COMP_WORDS[COMP_CWORD - 2]}

	case $prev in
	-d | --device) names=$(_gschedctl_names device list) ;;
	-g | --group) names=$(_gschedctl_names group list) ;;
	-b | --backend) names='module daemon' ;;
	-o | --output) names='table json' ;;
	--limit-by) names='rank worker' ;;
	--class) names='L_C M_C H_C M_M H_M' ;;
	--dispatch) names='queue static' ;;
	mode) names='auto spatial temporal' ;;
	policy) names='hpf srt ffs wfq corun' ;;
	-s | --socket)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	-n | --interval | --count | --workers | --margin | --ttl) return ;;
	*)
		# of another file, which names and files would be wrong for
		case ${value:+$prev} in
		'') ;;
		capsm.max | memory.max) names=max ;;
		capsm.min) names='0 max' ;;
		capsm.reserve) names=auto ;;
		plan) names=none ;;
		cgroup)
			mapfile -t COMPREPLY < <(compgen -d -- "$cur")
			return
			;;
		esac
		case "${value:+=}${words[*]}" in
		=*) ;;
		'') names='run group client device showconf setconf simulate status watch monitor metrics qos help version' ;;
		group | 'help group') names='create list set get show delete' ;;
		client | 'help client') names='set get' ;;
		'client set '*) names='capsm.max= gpu.weight= gpu.priority=' ;;
		'client get '*' '*) ;;
		'client get '*) names='capsm.max gpu.weight gpu.priority' ;;
		device | 'help device') names='list set delete' ;;
		help) names='run group client device showconf setconf simulate status watch monitor metrics qos help version' ;;
		'group '[sgd]*)
			case ${#words[@]},${words[1]} in
			2,*) names=$(_gschedctl_names group list) ;;
			*,set) names=$group_files ;;
			3,get) names="${group_files//=/} capsm.current capsm.plan gpu.stat gpu.pressure gpu.events gpu.preemption memory.current memory.peak" ;;
			esac
			;;
		'device set') names="$device_files $(_gschedctl_names device list)" ;;
		'device set '*) names=$device_files ;;
		'device delete') names=$(_gschedctl_names device list) ;;
		setconf | simulate*)
			if [[ $cur != -* ]]; then
				mapfile -t COMPREPLY < <(compgen -f -- "$cur")
				return
			fi
			;;
		esac
		;;
	esac
	if [[ $cur = -* && -z $value ]]; then
		case "${words[*]}" in
		run) own='--group= --create --env --strict --best-effort --limit-by= --dispatch= --workers= --class= --no-scope --verbose' ;;
		status | 'group list' | 'device list') own='--output= --json' ;;
		simulate*) own='--output= --json --quiet' ;;
		watch) own=--interval= ;;
		monitor) own='--tasks --count= --output= --json' ;;
		qos) own='--margin= --ttl= --verbose' ;;
		'device delete'*) own=--force ;;
		esac
		names="$own --device= --socket= --backend= --help --usage --version"
	fi
	mapfile -t COMPREPLY < <(compgen -W "$names" -- "$cur")
	# a value follows
	[[ ${COMPREPLY[0]:-} != *= ]] || compopt -o nospace 2>/dev/null
}
complete -F _gschedctl gschedctl
