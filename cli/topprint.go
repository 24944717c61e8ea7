package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/internal/report"
)

// say says a remark on stderr, once.
func (v *topView) say(text string) {
	if !v.said[text] {
		v.said[text] = true
		fmt.Fprintln(v.front.err, "podrun: "+report.Escape(text))
	}
}

func (v *topView) print(uses []podUse) error {
	if v.format == "json" {
		return v.printJSON(uses, true)
	}
	if len(uses) == 0 {
		where := ""
		if !v.allNamespaces {
			where = " in " + v.namespace + " namespace"
		}
		fmt.Fprintln(v.front.err, "No running pods found"+where+".")
		return nil
	}
	return v.front.table(v.table(uses, true))
}

// table is what is used in rows, with a head or without.
func (v *topView) table(uses []podUse, head bool) [][]string {
	var rows [][]string
	if head {
		names := []string{"NAME"}
		if v.containers {
			names = []string{"POD", "NAME"} // as kubectl top has it
		}
		if v.allNamespaces {
			names = append([]string{"NAMESPACE"}, names...)
		}
		rows = append(rows, append(names, "CPU(cores)", "LIMIT", "MEMORY(bytes)", "LIMIT", "PIDS", "READ", "WRITTEN", "PSI(cpu)", "PSI(memory)", "PSI(io)"))
	}
	for _, u := range uses {
		of := []podUse{u}
		if v.containers {
			of = u.inside
		}
		for _, u := range of {
			names := []string{u.place.Name}
			if v.containers {
				names = append(names, u.name)
			}
			if v.allNamespaces {
				names = append([]string{u.place.Namespace}, names...)
			}
			s := u.sample
			rows = append(rows, append(names, cores(u.cpu), cores(s.Limits.CPU), inMi(s.Memory), inMi(s.Limits.Memory), whole(s.Pids),
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

// inMi is a size in Mi, as kubectl top has it, but for what is less.
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

// printLines prints what is used with the time before each line; the head once.
func (v *topView) printLines(uses []podUse, now time.Time) error {
	rows := v.table(uses, !v.headed)
	for i := range rows {
		at := now.Format(time.TimeOnly)
		if i == 0 && !v.headed {
			at = "TIME"
		}
		rows[i] = append([]string{at}, rows[i]...)
	}
	v.headed = true
	return v.sheet.Print(v.front.out, rows)
}

// fitting is a table as it fits on a screen; 0 is any size.
func fitting(rows [][]string, cols, lines int) string {
	all := strings.Split(strings.TrimSuffix((&reading.Sheet{}).Text(rows), "\n"), "\n")
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

// podUseJSON is what -o json shows of a pod or a container. What is not known is
// left out.
type podUseJSON struct {
	Namespace  string        `json:"namespace,omitempty"`
	Name       string        `json:"name"`
	Time       *time.Time    `json:"time,omitempty"`
	CPU        *int64        `json:"cpuMillicores,omitempty"`
	CPUTotal   *float64      `json:"cpuSecondsTotal,omitempty"`
	Memory     *int64        `json:"memoryWorkingSetBytes,omitempty"`
	Pids       *int64        `json:"pids,omitempty"`
	Read       *int64        `json:"readBytesTotal,omitempty"`
	Written    *int64        `json:"writtenBytesTotal,omitempty"`
	Pressure   *pressureJSON `json:"pressureSomeAvg10,omitempty"`
	Limits     *limitsJSON   `json:"limits,omitempty"`
	Containers []podUseJSON  `json:"containers,omitempty"`
}

type pressureJSON struct {
	CPU    *float64 `json:"cpu,omitempty"`
	Memory *float64 `json:"memory,omitempty"`
	IO     *float64 `json:"io,omitempty"`
}

type limitsJSON struct {
	CPU    *int64 `json:"cpuMillicores,omitempty"`
	Memory *int64 `json:"memoryBytes,omitempty"`
	Pids   *int64 `json:"pids,omitempty"`
}

func (u *podUse) json() podUseJSON {
	s := u.sample
	out := podUseJSON{Name: u.name, CPU: u.cpu, Memory: s.Memory, Pids: s.Pids, Read: s.Read, Written: s.Written}
	if s.CPU != nil {
		out.CPUTotal = new(s.CPU.Seconds())
	}
	if p := (pressureJSON{s.Pressure.CPU, s.Pressure.Memory, s.Pressure.IO}); p != (pressureJSON{}) {
		out.Pressure = &p
	}
	if l := (limitsJSON{s.Limits.CPU, s.Limits.Memory, s.Limits.Pids}); l != (limitsJSON{}) {
		out.Limits = &l
	}
	if u.name == "" {
		out.Namespace, out.Name = u.place.Namespace, u.place.Name
		out.Time = new(s.At.UTC())
	}
	for i := range u.inside {
		out.Containers = append(out.Containers, u.inside[i].json())
	}
	return out
}

// printJSON prints all pods with their containers, indented or in one line.
func (v *topView) printJSON(uses []podUse, indent bool) error {
	pods := []podUseJSON{}
	for i := range uses {
		pods = append(pods, uses[i].json())
	}
	enc := json.NewEncoder(v.front.out)
	if indent {
		enc.SetIndent("", "    ")
	}
	return enc.Encode(pods)
}
