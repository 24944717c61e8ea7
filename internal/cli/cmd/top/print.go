package top

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/podstats"
	"github.com/podrun/podrun/internal/cli/internal/podview"
)

func (o *options) print(uses []podstats.Usage) error {
	if o.format == "json" {
		return o.printJSON(uses, true)
	}
	if len(uses) == 0 {
		where := ""
		if !o.AllNamespaces {
			where = " in " + o.Namespace + " namespace"
		}
		fmt.Fprintln(o.Env.ErrOut, "No running pods found"+where+".")
		return nil
	}
	return o.Env.PrintTable(o.table(uses, true))
}

// table returns usage as rows, with or without a header.
func (o *options) table(uses []podstats.Usage, head bool) [][]string {
	var rows [][]string
	if head {
		names := []string{"NAME"}
		if o.containers {
			names = []string{"POD", "NAME"} // as in kubectl top
		}
		if o.AllNamespaces {
			names = append([]string{"NAMESPACE"}, names...)
		}
		rows = append(rows, append(names, "CPU(cores)", "LIMIT", "MEMORY(bytes)", "LIMIT", "PIDS", "READ", "WRITTEN", "PSI(cpu)", "PSI(memory)", "PSI(io)"))
	}
	for _, u := range uses {
		of := []podstats.Usage{u}
		if o.containers {
			of = u.Containers
		}
		for _, u := range of {
			names := []string{u.Pod.Name}
			if o.containers {
				names = append(names, u.Name)
			}
			if o.AllNamespaces {
				names = append([]string{u.Pod.Namespace}, names...)
			}
			s := u.Sample
			rows = append(rows, append(names, cores(u.CPU), cores(s.Limits.CPU), inMi(s.Memory), inMi(s.Limits.Memory), whole(s.Pids),
				inMi(s.Read), inMi(s.Written), percent(s.Pressure.CPU), percent(s.Pressure.Memory), percent(s.Pressure.IO)))
		}
	}
	return rows
}

const unknown = "-"

func cores(n *int64) string {
	if n == nil {
		return unknown
	}
	return fmt.Sprintf("%dm", *n)
}

// inMi formats a size in Mi, as in kubectl top, except for smaller sizes.
func inMi(n *int64) string {
	switch {
	case n == nil:
		return unknown
	case *n == 0:
		return "0"
	case *n < 1<<20:
		return fmt.Sprintf("%dKi", max(*n>>10, 1))
	}
	return fmt.Sprintf("%dMi", *n>>20)
}

func whole(n *int64) string {
	if n == nil {
		return unknown
	}
	return fmt.Sprint(*n)
}

func percent(n *float64) string {
	if n == nil {
		return unknown
	}
	return fmt.Sprintf("%.2f", *n)
}

// printLines prints usage with the time before each line; the header once.
func (o *options) printLines(uses []podstats.Usage, now time.Time) error {
	rows := o.table(uses, !o.headed)
	for i := range rows {
		moment := now.Format(time.TimeOnly)
		if i == 0 && !o.headed {
			moment = "TIME"
		}
		rows[i] = append([]string{moment}, rows[i]...)
	}
	o.headed = true
	return o.printer.Print(o.Env.Out, rows)
}

// fitting returns a table cut to the size of a screen; 0 means no limit.
func fitting(rows [][]string, cols, lines int) string {
	all := strings.Split(strings.TrimSuffix((&podview.Table{}).Text(rows), "\n"), "\n")
	if lines > 2 && len(all) > lines-1 {
		hidden := len(all) - (lines - 2)
		all = append(all[:lines-2], fmt.Sprintf("… and %d more", hidden))
	}
	for i, line := range all {
		if r := []rune(line); cols > 0 && len(r) > cols {
			all[i] = string(r[:cols])
		}
	}
	return strings.Join(all, "\n") + "\n"
}

// printJSON prints all pods with their containers, indented or in one line.
func (o *options) printJSON(uses []podstats.Usage, indent bool) error {
	pods := []podstats.UsageJSON{}
	for i := range uses {
		pods = append(pods, uses[i].JSON())
	}
	enc := json.NewEncoder(o.Env.Out)
	if indent {
		enc.SetIndent("", "    ")
	}
	return enc.Encode(pods)
}
