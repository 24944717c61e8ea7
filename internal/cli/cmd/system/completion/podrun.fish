# fish completion for podrun

function __podrun_complete
	set -l words (commandline -opc) (commandline -ct)
	for line in (podrun __complete $words[2..] 2>/dev/null)
		if string match -q ':files*' -- $line
			__fish_complete_path (commandline -ct)
		else
			echo $line
		end
	end
end

complete -c podrun -f -a '(__podrun_complete)'
