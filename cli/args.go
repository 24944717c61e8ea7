package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// find walks from the app down to the command that args name. rest is what
// follows the command's name, after the options that stand before it, as kubectl
// takes them; path is empty for the app itself.
func find(app *cli.App, args []string) (path []string, cmd *cli.Command, rest []string) {
	cmd = &cli.Command{Name: app.Name, Flags: app.Flags, Subcommands: app.Commands}
	var before []string
	for len(cmd.Subcommands) > 0 {
		i, sub := nextCommand(cmd, args)
		if sub == nil {
			break
		}
		before = append(before, args[:i]...)
		path, cmd, args = append(path, sub.Name), sub, args[i+1:]
	}
	if len(path) == 0 {
		return nil, cmd, args
	}
	if path[0] != "systemd" { // a unit has no namespace: what -n asks for would be lost
		before = withoutNamespace(cmd, before)
	}
	return path, cmd, append(before, args...)
}

// nextCommand finds the first word that names a subcommand of cmd and has nothing but
// options of that subcommand before it.
func nextCommand(cmd *cli.Command, args []string) (int, *cli.Command) {
	for i, word := range args {
		if sub := cmd.Command(word); sub != nil && (i == 0 || onlyOptions(cmd, sub, args[:i])) {
			return i, sub
		}
	}
	return 0, nil
}

// onlyOptions reports whether words are options of sub or of its subcommands, with their
// values, or a namespace, which every command takes. Unknown options count: the parser of
// sub reports them. Options of cmd alone do not.
func onlyOptions(cmd, sub *cli.Command, words []string) bool {
	all := &cli.Command{Flags: append(flagsBelow(sub), namespaceFlag())}
	flags, others, tail, whole := split(all, words)
	return whole && len(others) == 0 && tail == nil && !slices.ContainsFunc(flags, func(word string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		return strings.HasPrefix(word, "-") && findFlag(all, name) == nil && findFlag(cmd, name) != nil
	})
}

// flagsBelow are the flags of a command and of all its subcommands.
func flagsBelow(cmd *cli.Command) []cli.Flag {
	flags := slices.Clone(cmd.Flags)
	for _, sub := range cmd.Subcommands {
		flags = append(flags, flagsBelow(sub)...)
	}
	return flags
}

// withoutNamespace drops the namespace from options before a command that has none, as
// kubectl does: an alias of "podrun -n web" works with every command.
func withoutNamespace(cmd *cli.Command, before []string) []string {
	if len(before) == 0 || findFlag(cmd, "namespace") != nil {
		return before
	}
	all := &cli.Command{Flags: append(flagsBelow(cmd), namespaceFlag())}
	flags, _, _, _ := split(all, before)
	var kept []string
	for i := 0; i < len(flags); i++ {
		name, _, valued := strings.Cut(strings.TrimLeft(flags[i], "-"), "=")
		switch {
		case name != "n" && name != "namespace":
			kept = append(kept, flags[i])
			if takesValue(all, flags[i]) {
				i++
				kept = append(kept, flags[i])
			}
		case !valued:
			i++ // its value
		}
	}
	return kept
}

// wantsHelp looks for -h and --help among a command's own arguments.
func wantsHelp(cmd *cli.Command, args []string) bool {
	flags, _, _, _ := split(cmd, args)
	return slices.ContainsFunc(flags, func(word string) bool { return word == "-h" || word == "--help" })
}

// arrange puts a command's flags before its other arguments, wherever the user
// wrote them, takes clusters such as -it apart, and keeps a "--" and what follows.
func arrange(cmd *cli.Command, args []string) []string {
	if len(cmd.Subcommands) > 0 && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return args[:1] // no subcommand: what its options would mean, nobody knows
	}
	flags, words, tail, whole := split(cmd, args)
	switch {
	case !whole: // the parser says which value is missing
		return flags
	case len(cmd.Subcommands) > 0: // a word that is no subcommand, or none at all
		return append(flags, words...)
	}
	out := append(flags, "--")
	out = append(out, words...)
	return append(out, tail...)
}

// split sorts arguments into flags (with their values), other words, and "--"
// with all that follows it. It is not whole if the last flag lacks its value.
func split(cmd *cli.Command, args []string) (flags, words, tail []string, whole bool) {
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch {
		case word == "--":
			return flags, words, append([]string{"--"}, args...), true
		case len(word) < 2 || word[0] != '-':
			words = append(words, word)
		default:
			for _, part := range cluster(cmd, word) {
				flags = append(flags, part)
				if !takesValue(cmd, part) {
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

// cluster takes -it apart into -i and -t, and -ojson into -o=json. What it does
// not know it leaves to the parser, which will complain.
func cluster(cmd *cli.Command, word string) []string {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	if strings.HasPrefix(word, "--") || len(name) < 2 || findFlag(cmd, name) != nil {
		return []string{word}
	}
	var parts []string
	for i := 1; i < len(word); i++ {
		letter := word[i : i+1]
		known := findFlag(cmd, letter)
		if known == nil && letter != "h" {
			return []string{word}
		}
		if known != nil && valued(known) {
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

// takesValue says whether a flag's value is the word after it.
func takesValue(cmd *cli.Command, word string) bool {
	if strings.Contains(word, "=") {
		return false
	}
	f := findFlag(cmd, strings.TrimLeft(word, "-"))
	return f != nil && valued(f)
}

func findFlag(cmd *cli.Command, name string) cli.Flag {
	for _, f := range cmd.Flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func valued(f cli.Flag) bool {
	if g, ok := f.(*cli.GenericFlag); ok {
		if alone, ok := g.Value.(interface{ IsBoolFlag() bool }); ok && alone.IsBoolFlag() {
			return false
		}
	}
	doc, ok := f.(cli.DocGenerationFlag)
	return ok && doc.TakesValue()
}
