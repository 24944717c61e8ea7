# bash completion for podrun

_podrun() {
	local cur=${COMP_WORDS[COMP_CWORD]} words=("${COMP_WORDS[@]:1:COMP_CWORD}") line
	# bash takes words apart at = and :, which are in options and in names of images.
	if declare -F _get_comp_words_by_ref >/dev/null; then
		local cword
		_get_comp_words_by_ref -n =: cur words cword
		words=("${words[@]:1:cword}")
	fi
	COMPREPLY=()
	while IFS=$'\t' read -r line _; do
		if [ "$line" = :files ]; then
			compopt -o default -o filenames 2>/dev/null
		else
			COMPREPLY+=("$line")
			case $line in *[=:/]) compopt -o nospace 2>/dev/null ;; esac
		fi
	done < <(podrun __complete "${words[@]}" 2>/dev/null)
	if declare -F __ltrim_colon_completions >/dev/null; then __ltrim_colon_completions "$cur"; fi
	return 0
}

complete -o default -F _podrun podrun
