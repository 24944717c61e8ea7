package cmdline

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
)

// WriteMan writes the manual pages of the app and of all its commands: podrun.1, podrun-up.1,
// podrun-image-ls.1 and so on.
func WriteMan(app *cli.App, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot write manual pages: %w", err)
	}
	var write func(path []string, cmd *cli.Command) error
	write = func(path []string, cmd *cli.Command) error {
		name := manName(path) + ".1"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(ManPage(path, cmd, app)), 0o644); err != nil {
			return fmt.Errorf("cannot write manual pages: %w", err)
		}
		for _, sub := range cmd.Subcommands {
			if err := write(append(path[:len(path):len(path)], sub.Name), sub); err != nil {
				return err
			}
		}
		return nil
	}
	_, root, _ := Find(app, nil)
	return write(nil, root)
}

func manName(path []string) string { return strings.Join(append([]string{"podrun"}, path...), "-") }

// ManPage returns a page of section 1, in the man(7) macros.
func ManPage(path []string, cmd *cli.Command, app *cli.App) string {
	var b strings.Builder
	name, summary, usage := synopsis(path, cmd, app)
	fmt.Fprintf(&b, ".TH %s 1 \"\" podrun \"User Commands\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(manName(path)), roff(manName(path)), roff(summary))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n%s\n", roff(name), roff(strings.TrimSpace(usage)))
	about, examples, _ := strings.Cut(cmd.Description, "\nExamples:\n")
	if about = strings.TrimSpace(about); about != "" {
		fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", strings.ReplaceAll(roff(about), "\n\n", "\n.PP\n"))
	}
	manRows(&b, "COMMANDS", commandRows(cmd.Subcommands))
	manRows(&b, "OPTIONS", append(flagRows(cmd.Flags), [2]string{"-h, --help", "show this help"}))
	if examples = strings.Trim(examples, "\n"); examples != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.EX\n%s\n.EE\n", roff(examples))
	}
	var others []string
	if len(path) > 0 {
		others = append(others, manName(path[:len(path)-1]))
	}
	for _, sub := range cmd.Subcommands {
		others = append(others, manName(append(path[:len(path):len(path)], sub.Name)))
	}
	if len(others) > 0 {
		b.WriteString(".SH SEE ALSO\n")
		for i, other := range others {
			end := ","
			if i == len(others)-1 {
				end = ""
			}
			fmt.Fprintf(&b, ".BR %s (1)%s\n", roff(other), end)
		}
	}
	return b.String()
}

func manRows(b *strings.Builder, title string, rows [][2]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	for _, r := range rows {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(r[0]), roff(r[1]))
	}
}

// roff escapes text so that nothing in it is a request or an escape.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, ".") {
			line = `\&` + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
