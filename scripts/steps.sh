# Sourced by .ci/run and scripts/test-all: steps with their times, and a check for remaining
# processes.
# shellcheck shell=bash

step_times=()
step_user='' step_before=''

# step WORDS: run a step. A failed step ends the run, after the table of times.
step() {
	local start=$SECONDS code=0
	info "$*"
	"$@" || code=$?
	step_times+=("$(printf '%-28s %5d s%s' "$*" $((SECONDS - start)) "$([ $code = 0 ] || echo "  failed: exit code $code")")")
	[ $code = 0 ] || { times; exit $code; }
}

# times prints the table of steps.
times() {
	info "steps"
	printf '%s\n' "${step_times[@]}" "$(printf '%-28s %5d s' "all" $SECONDS)" >&2
}

# processes lists processes of the tests' ordinary user, without zombies: those wait for PID 1.
processes() { ps -eo user:32=,stat=,pid=,args= | awk -v u="$step_user" '$1 == u && $2 !~ /^Z/' | sort; }

# begin records which processes run before the tests.
begin() {
	step_user=$("${top:?}/scripts/user")
	step_before=$(processes)
}

# end prints the times, and fails if tests have left processes. An ordinary user has other
# processes; only the account made for tests has none.
end() {
	local left=''
	times
	[ "$(id -u)" = 0 ] || return 0
	for _ in $(seq 50); do
		left=$(comm -13 <(echo "$step_before") <(processes))
		if [ -z "$left" ]; then return; fi
		sleep 0.1
	done
	die "processes of $step_user are left running: $left"
}
