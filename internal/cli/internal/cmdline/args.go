// Package cmdline handles the form of the command line: order of words, help text, manual pages and
// suggestions for unknown words.
package cmdline

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
)

// Find walks from the app to the command that args name. rest holds the arguments after the command's
// name, preceded by the options before it, which kubectl accepts too. path is empty for the app itself.
func Find(app *cli.App, args []string) (path []string, cmd *cli.Command, rest []string) {
	cmd = &cli.Command{Name: app.Name, Flags: app.Flags, Subcommands: app.Commands}
	var before []string
	for len(cmd.Subcommands) > 0 {
		i, sub := nextCommand(cmd, args)
		if sub == nil {
			break
		}
		before = append(before, longNames(cmd, sub, args[:i])...)
		path, cmd, args = append(path, sub.Name), sub, args[i+1:]
	}
	if len(path) == 0 {
		return nil, cmd, args
	}
	if path[0] != "systemd" { // a unit has no namespace, so -n must not be dropped silently
		before = withoutNamespace(cmd, before)
	}
	return path, cmd, append(before, args...)
}

// nextCommand finds the first word that names a subcommand of cmd and is preceded only by options of that
// subcommand.
func nextCommand(cmd *cli.Command, args []string) (int, *cli.Command) {
	for i, word := range args {
		if sub := cmd.Command(word); sub != nil && (i == 0 || onlyOptions(cmd, sub, longNames(cmd, sub, args[:i]))) {
			return i, sub
		}
	}
	return 0, nil
}

// longNames returns the options before a subcommand, with long names where the short ones mean something else after it: -f
// may be --file of the command and --follow of the subcommand.
func longNames(cmd, sub *cli.Command, words []string) []string {
	flags, others, tail, whole := Split(&cli.Command{Flags: append(slices.Clone(cmd.Flags), flagsBelow(sub)...)}, words)
	if !whole || len(others) > 0 || tail != nil {
		return words
	}
	for i, word := range flags {
		name, value, valued := strings.Cut(strings.TrimLeft(word, "-"), "=")
		f := FindFlag(cmd, name)
		if f == nil || !strings.HasPrefix(word, "-") || FindFlag(sub, f.Names()[0]) == nil || slices.Contains(FindFlag(sub, f.Names()[0]).Names(), name) {
			continue
		}
		if flags[i] = "--" + f.Names()[0]; valued {
			flags[i] += "=" + value
		}
	}
	return flags
}

// onlyOptions reports whether words are options, with their values, of sub or its subcommands, or a
// namespace, which every command accepts. Unknown options count, because the parser of sub reports them.
// Options that only cmd has do not.
func onlyOptions(cmd, sub *cli.Command, words []string) bool {
	all := &cli.Command{Flags: append(flagsBelow(sub), cmdutil.NamespaceFlag())}
	flags, others, tail, whole := Split(all, words)
	return whole && len(others) == 0 && tail == nil && !slices.ContainsFunc(flags, func(word string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		return strings.HasPrefix(word, "-") && FindFlag(all, name) == nil && FindFlag(cmd, name) != nil
	})
}

// flagsBelow returns the flags of a command and of all its subcommands.
func flagsBelow(cmd *cli.Command) []cli.Flag {
	flags := slices.Clone(cmd.Flags)
	for _, sub := range cmd.Subcommands {
		flags = append(flags, flagsBelow(sub)...)
	}
	return flags
}

// withoutNamespace removes the namespace option before a command that has none, as kubectl does. An alias
// for "podrun -n web" then works with every command.
func withoutNamespace(cmd *cli.Command, before []string) []string {
	if len(before) == 0 || FindFlag(cmd, "namespace") != nil {
		return before
	}
	all := &cli.Command{Flags: append(flagsBelow(cmd), cmdutil.NamespaceFlag())}
	flags, _, _, _ := Split(all, before)
	var kept []string
	for i := 0; i < len(flags); i++ {
		name, _, valued := strings.Cut(strings.TrimLeft(flags[i], "-"), "=")
		switch {
		case name != "n" && name != "namespace":
			kept = append(kept, flags[i])
			if TakesValue(all, flags[i]) {
				i++
				kept = append(kept, flags[i])
			}
		case !valued:
			i++ // skip its value
		}
	}
	return kept
}

// WantsHelp reports whether --help is among a command's own arguments, or -h, unless the command has such an option.
func WantsHelp(cmd *cli.Command, args []string) bool {
	flags, _, _, _ := Split(cmd, args)
	short := FindFlag(cmd, "h") == nil
	return slices.ContainsFunc(flags, func(word string) bool { return word == "-h" && short || word == "--help" })
}

// Arrange moves a command's flags before its other arguments, splits clusters such as -it, and keeps "--"
// and all that follows it in place.
func Arrange(cmd *cli.Command, args []string) []string {
	if len(cmd.Subcommands) > 0 && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return args[:1] // there is no subcommand whose options these could be
	}
	flags, words, tail, whole := Split(cmd, args)
	switch {
	case !whole: // the parser reports which value is missing
		return flags
	case len(cmd.Subcommands) > 0: // a word that is no subcommand, or no word at all
		return append(append(flags, words...), tail...)
	}
	out := append(flags, "--")
	out = append(out, words...)
	return append(out, tail...)
}

// Split separates arguments into flags with their values, other words, and "--" with all that follows it.
// whole is false if the last flag lacks its value.
func Split(cmd *cli.Command, args []string) (flags, words, tail []string, whole bool) {
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch {
		case word == "--":
			return flags, words, append([]string{"--"}, args...), true
		case len(word) < 2 || word[0] != '-':
			if words = append(words, word); len(words) == wordsBeforeCommandLine(cmd) {
				return flags, append(words, args...), nil, true
			}
		default:
			for _, part := range ExpandCluster(cmd, word) {
				flags = append(flags, part)
				if !TakesValue(cmd, part) {
					continue
				}
				if len(args) == 0 {
					return flags, nil, nil, false
				}
				flags, args = append(flags, args[0]), args[1:]
			}
		}
	}
	return flags, words, nil, true
}

// wordsBeforeCommandLine returns after how many words of its own everything belongs to another program's command line,
// as with docker run: the image of run, the service of compose exec; the pod and the program of exec without "--". 0:
// never.
func wordsBeforeCommandLine(cmd *cli.Command) int {
	switch {
	case cmd.Name == "run", strings.HasPrefix(cmd.ArgsUsage, "SERVICE COMMAND"):
		return 1
	case cmd.Name == "exec":
		return 2
	}
	return 0
}

// ExpandCluster splits -it into -i and -t, and -ojson into -o=json. It leaves unknown words to the
// parser, which reports them.
func ExpandCluster(cmd *cli.Command, word string) []string {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	if strings.HasPrefix(word, "--") || len(name) < 2 || FindFlag(cmd, name) != nil {
		return []string{word}
	}
	var parts []string
	for i := 1; i < len(word); i++ {
		letter := word[i : i+1]
		known := FindFlag(cmd, letter)
		if known == nil && letter != "h" {
			return []string{word}
		}
		if known != nil && HasValue(known) {
			value := strings.TrimPrefix(word[i+1:], "=")
			if value == "" {
				return append(parts, "-"+letter)
			}
			return append(parts, "-"+letter+"="+value)
		}
		parts = append(parts, "-"+letter)
	}
	return parts
}

// TakesValue reports whether a flag's value is the next word.
func TakesValue(cmd *cli.Command, word string) bool {
	if strings.Contains(word, "=") {
		return false
	}
	f := FindFlag(cmd, strings.TrimLeft(word, "-"))
	return f != nil && HasValue(f)
}

// FindFlag returns the flag of a name, without dashes, or nil.
func FindFlag(cmd *cli.Command, name string) cli.Flag {
	for _, f := range cmd.Flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// HasValue reports whether a flag takes a value.
func HasValue(f cli.Flag) bool {
	if g, ok := f.(*cli.GenericFlag); ok {
		if alone, ok := g.Value.(interface{ IsBoolFlag() bool }); ok && alone.IsBoolFlag() {
			return false
		}
	}
	doc, ok := f.(cli.DocGenerationFlag)
	return ok && doc.TakesValue()
}

// FlagValue returns the value of an option among words.
func FlagValue(cmd *cli.Command, words []string, name string) string {
	flags, _, _, _ := Split(cmd, words)
	value := ""
	for i, word := range flags {
		option, v, has := strings.Cut(strings.TrimLeft(word, "-"), "=")
		known := FindFlag(cmd, option)
		if known == nil || known.Names()[0] != name || !strings.HasPrefix(word, "-") {
			continue
		}
		if value = v; !has && i+1 < len(flags) {
			value = flags[i+1]
		}
	}
	return value
}
