package cmdline

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// synopsis returns the name of a command, its summary, and what follows the name on the command line.
func synopsis(path []string, cmd *cli.Command, app *cli.App) (name, summary, usage string) {
	name, summary = strings.Join(append([]string{app.Name}, path...), " "), cmd.Usage
	if len(path) == 0 {
		summary = app.Usage
	}
	if len(cmd.Subcommands) > 0 && cmd.ArgsUsage == "" {
		usage += " COMMAND"
	}
	if len(cmd.Flags) > 0 && len(path) > 0 {
		usage += " [options]"
	}
	if cmd.ArgsUsage != "" {
		usage += " " + cmd.ArgsUsage
	}
	return name, summary, usage
}

// Help returns the text of --help for the command at path, or for the app.
func Help(path []string, cmd *cli.Command, app *cli.App) string {
	var b strings.Builder
	name, summary, usage := synopsis(path, cmd, app)
	fmt.Fprintf(&b, "%s: %s\n\nUsage:\n  %s%s\n", name, summary, name, usage)
	if cmd.Description != "" {
		b.WriteString("\n" + strings.TrimRight(cmd.Description, "\n") + "\n")
	}
	for _, g := range groups(cmd.Subcommands) {
		b.WriteString("\n" + strings.TrimSpace(g[0].Category+" Commands") + ":\n" + columns(commandRows(g)))
	}
	b.WriteString("\nOptions:\n" + columns(append(flagRows(cmd.Flags), [2]string{"-h, --help", "show this help"})))
	if len(path) == 0 {
		b.WriteString("\n`podrun COMMAND --help` shows the help of a command.\n")
	}
	return b.String()
}

// groups divides commands by category, in the order of the first of each.
func groups(cmds []*cli.Command) [][]*cli.Command {
	var list [][]*cli.Command
	for _, c := range cmds {
		i := slices.IndexFunc(list, func(g []*cli.Command) bool { return g[0].Category == c.Category })
		if i < 0 {
			i, list = len(list), append(list, nil)
		}
		list[i] = append(list[i], c)
	}
	return list
}

func commandRows(cmds []*cli.Command) [][2]string {
	var rows [][2]string
	for _, c := range cmds {
		rows = append(rows, [2]string{c.Name, c.Usage})
	}
	return rows
}

// flagRows formats every flag as "-n, --name VALUE". The name of the value is in back quotes in the
// flag's usage.
func flagRows(flags []cli.Flag) [][2]string {
	var rows [][2]string
	for _, f := range flags {
		doc, ok := f.(cli.DocGenerationFlag)
		if !ok {
			continue
		}
		var short, long []string
		for _, n := range f.Names() {
			if len(n) == 1 {
				short = append(short, "-"+n)
			} else {
				long = append(long, "--"+n)
			}
		}
		left := strings.Join(append(short, long...), ", ")
		usage := doc.GetUsage()
		if _, after, ok := strings.Cut(usage, "`"); ok {
			value, _, _ := strings.Cut(after, "`")
			left += " " + value
			usage = strings.ReplaceAll(usage, "`", "")
		}
		rows = append(rows, [2]string{left, usage})
	}
	return rows
}

// columns aligns rows of two cells; the second cell is wrapped at column 80.
func columns(rows [][2]string) string {
	width := 0
	for _, r := range rows {
		width = max(width, utf8.RuneCountInString(r[0]))
	}
	var b strings.Builder
	for _, r := range rows {
		line := fmt.Sprintf("  %-*s ", width, r[0])
		for _, word := range strings.Fields(r[1]) {
			if len(line)+1+len(word) > 80 {
				b.WriteString(strings.TrimRight(line, " ") + "\n")
				line = strings.Repeat(" ", width+3)
			}
			line += " " + word
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
