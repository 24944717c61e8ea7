#compdef podrun
# zsh completion for podrun

_podrun() {
	local -a lines choices
	local line files
	lines=("${(@f)$(podrun __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	for line in $lines; do
		if [[ $line == :files* ]]; then
			files=1
		elif [[ -n $line ]]; then
			choices+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
		fi
	done
	(( $#choices )) && _describe -t podrun podrun choices
	[[ -n $files ]] && _files
	return 0
}

if [[ $funcstack[1] == _podrun ]]; then _podrun "$@"; else compdef _podrun podrun; fi
