package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/podrun/podrun/test/internal/measure"
)

// pages are the files that publish the results of a run.
type pages struct {
	docs    string // the directory of bench.md, bench.svg and bench.json; "": none
	network string // the directory of netbench's page and figures; "": none
	top     string // the directory of the files in summaries, between whose marks the most important figures go; "": none
}

// write writes the page, its plot, its figures, and the summaries in other texts.
func (r report) write(to pages) error {
	if to.docs == "" {
		return nil
	}
	network := ""
	if to.network != "" {
		b, err := os.ReadFile(filepath.Join(to.network, "network.md"))
		if err != nil {
			return err
		}
		network = "\n## Network\n\n" + string(b)
		if err := r.addConnections(filepath.Join(to.network, "netbench.json")); err != nil {
			return err
		}
	}
	list := r.ratios()
	subtitle := fmt.Sprintf("%d rounds, %d CPUs, kernel %s, %s", r.Rounds, r.CPUs, r.Kernel, r.When.Format("2006-01-02"))
	if err := os.WriteFile(filepath.Join(to.docs, "bench.svg"), []byte(plot(subtitle, list)), 0o644); err != nil {
		return err
	}
	text := r.page(list) + network
	if err := os.WriteFile(filepath.Join(to.docs, "bench.md"), []byte(text), 0o644); err != nil {
		return err
	}
	if err := measure.Save(filepath.Join(to.docs, "bench.json"), r); err != nil || to.top == "" {
		return err
	}
	return writeSummary(filepath.Join(to.top, "README.md"), r)
}

// Short connections from another host to a hostPort, as netbench measures them: with podrun, and with pasta, which is podman's network.
const (
	connectionTask = "short connection to a hostPort"
	connectionCPU  = "CPU of a " + connectionTask
)

// connectionsNote is the page's text about them.
const connectionsNote = `
A *short connection* comes from another host and carries one byte in each direction; podman's figures are of pasta, its network. Its processor
time is of the processes that forward it: podrun's supervisor, pasta.
`

// addConnections adds the figures of connections from a file of netbench.
func (r *report) addConnections(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var by map[string]map[string][]float64
	if err := json.Unmarshal(b, &by); err != nil {
		return fmt.Errorf("read figures of connections: %w", err)
	}
	for column, network := range map[string]string{"podrun": "podrun", "podman": "pasta"} {
		var each []float64
		for _, perSecond := range by[measure.ConnectionsIn][network] {
			each = append(each, 1000/perSecond)
		}
		put(r.Times, connectionTask, column, summaryOf(each))
		put(r.Times, connectionCPU, column, summaryOf(by[measure.ConnectionCPUIn][network]))
	}
	return nil
}

// README.md has the figures of the last run between these marks.
const (
	tableFrom = "<!-- from make bench -->\n"
	tableTo   = "<!-- to here -->\n"
)

func writeSummary(readme string, r report) error {
	b, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	text, err := withSummary(string(b), r)
	if err != nil {
		return fmt.Errorf("write figures to %s: %w", readme, err)
	}
	return os.WriteFile(readme, []byte(text), 0o644)
}

// withSummary returns a text with new figures between the marks.
func withSummary(text string, r report) (string, error) {
	head, rest, ok1 := strings.Cut(text, tableFrom)
	_, tail, ok2 := strings.Cut(rest, tableTo)
	if !ok1 || !ok2 {
		return "", fmt.Errorf("the text has no marks %q and %q", tableFrom, tableTo)
	}
	return head + tableFrom + r.summaryTable() + tableTo + tail, nil
}

// summaryTable returns the most important figures.
func (r report) summaryTable() string {
	table := measure.Table{Head: []string{"", "podrun", "podman", "ratio"}}
	add := func(title, format string, ours, theirs float64) {
		if ours > 0 && theirs > 0 {
			table.Add(title, fmt.Sprintf(format, ours), fmt.Sprintf(format, theirs), fraction(ours/theirs))
		}
	}
	pod := shapes[1].title
	for _, t := range []struct{ title, format, task string }{
		{"processor time of a pod's life (`up -d`, 4 s, `down`), " + pod, "%.0f ms", lifeTask(shapes[1])},
		{"`up -d`, " + pod, "%.0f ms", "up, " + pod}, {"`down`, pod at rest, " + pod, "%.0f ms", "down, " + pod + resting},
		{"`exec … true`", "%.1f ms", execTask}, {"`exec … true`, pod at rest", "%.1f ms", execTask + resting},
		{"`up -d`, 1 container, where each sync of the disk takes 5 ms longer", "%.0f ms", slowTask},
		{"processor time of a short connection to a hostPort (podman: pasta)", "%.2f ms", connectionCPU},
	} {
		add(t.title, t.format, r.Times[t.task]["podrun"].Median, r.Times[t.task]["podman"].Median)
	}
	add("read from a cold disk by the first `up -d`, 1 container", "%.0f MiB", r.Read[firstUp]["podrun"].Median, r.Read[firstUp]["podman"].Median)
	memory := r.Memory[pod+", idle"]
	add("its own memory (PSS) when the pod is at rest", "%.1f MB", float64(memory["podrun"].PSS)/1024, float64(memory["podman"].PSS)/1024)
	intro := fmt.Sprintf("Medians of %d rounds on %d processors, with podman %s:\n\n", r.Rounds, r.CPUs, r.podman())
	return intro + table.Markdown()
}

// podman returns its version, the components that this machine requires, and its runtime's version.
func (r report) podman() string {
	version := r.PodmanVersion
	if i := strings.LastIndexByte(version, ' '); i >= 0 {
		version = version[i+1:]
	}
	text := strings.TrimSpace(version + " " + r.Podman)
	if r.RuntimeVersion != "" {
		text += " (" + r.RuntimeVersion + ")"
	}
	return text
}

// page returns everything as Markdown.
func (r report) page(list []ratio) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Benchmarks

<!-- written by `+"`make bench`"+` -->

Measured by `+"`make bench`"+` on %s: %d rounds in %s, %d CPUs, kernel %s, load %s before. podrun and
podman %s take turns, so that other load on the machine affects both. Times are min / median / max.
A ratio is of medians: 1/10 means a tenth of what podman takes. Missed targets are orange in the picture.
System calls are counted once, of all processes of the engine; their number hardly depends on the machine's
load. A life is `+"`up`"+`, 4 s of rest and `+"`down`"+`; its processor time is of all processes, also of the containers.
A pod *at rest* has done nothing for 4 s. Lives, pods at rest and disks are measured in at most %d rounds.

![ratios](bench.svg)

`, r.When.Format("2006-01-02"), r.Rounds, r.Took, r.CPUs, r.Kernel, cmp.Or(r.Load, "unknown"), r.podman(), restRounds)
	if r.PodmanIdled > 0 {
		fmt.Fprintf(&b, "On this machine podman's clean-up process did not report the exit of init containers, for which podman waits %v each:\n%.0f s in all of its starts, which are not counted.\n\n", idlePatience, r.PodmanIdled)
	}
	table := measure.Table{Head: []string{"", "podrun", "podman", "ratio", "target", "system calls"}}
	for _, x := range list {
		target := x.Bar
		if x.missed() {
			target += ": missed"
		}
		if !strings.HasPrefix(x.Name, callsOf) {
			table.Add(x.Name, x.Ours, x.Theirs, fraction(x.Value), target, r.calls(x.Name))
		}
	}
	b.WriteString(table.Markdown())
	if len(r.Starts) > 0 {
		b.WriteString(startNote)
	}
	if len(r.Read) > 0 {
		b.WriteString(disksNote)
	} else {
		b.WriteString("\nA cold disk and slow syncs were not measured: only root can.\n")
	}
	if len(r.Times[connectionCPU]) > 0 {
		b.WriteString(connectionsNote)
	}
	b.WriteString(r.scalePart() + r.costPart() + r.memoryPart())
	return b.String()
}

func (r report) scalePart() string {
	s := r.Scale
	if s == nil {
		return ""
	}
	var pss []string
	for _, n := range psAt {
		if kib, ok := s.PSS[n]; ok {
			pss = append(pss, fmt.Sprintf("%s %.1f MB", podCount(n), float64(kib)/1024))
		}
	}
	return fmt.Sprintf(`
%d pods with %d containers: `+"`up`"+` of pod 2 took %s ms, of pod %d %s (one more pod beside the first and
beside all, %d times and %d). At rest, each probed every 10 s, they took %s %% of a processor
in a minute (in parentheses: the range of its six slices of 10 s). podrun's own memory (PSS): %s.
`, s.Pods, s.Containers, s.Few, s.Pods+1, s.Many, len(s.Few.All), len(s.Many.All), s.idleText(), strings.Join(pss, ", "))
}

func (r report) costPart() string {
	c := r.Costs
	if c == nil {
		return ""
	}
	var pss []string
	for _, k := range probeKinds {
		pss = append(pss, fmt.Sprintf("%.1f MB (%s)", float64(c.ProbingPSS[k.name])/1024, k.name))
	}
	return fmt.Sprintf("\nIn an idle minute a pod wrote %d bytes to the disk. With %d containers probed every second podrun's own memory was %s.\n",
		c.IdleWritten, probed, strings.Join(pss, ", "))
}

// memoryPart returns the part about the memory of an engine's own processes.
func (r report) memoryPart() string {
	table := measure.Table{Head: []string{"pod", "engine", "process", "number", "PSS together"}}
	for _, pod := range slices.Sorted(maps.Keys(r.Memory)) {
		for _, engine := range slices.Sorted(maps.Keys(r.Memory[pod])) {
			each := r.Memory[pod][engine].Each
			for _, name := range slices.Sorted(maps.Keys(each)) {
				table.Add(pod, engine, name, fmt.Sprint(each[name].Processes), fmt.Sprintf("%d KiB", each[name].PSS))
			}
		}
	}
	if len(table.Rows) == 0 {
		return ""
	}
	return "\n## Memory by process\n\nThe engine's own processes of one pod, without its containers' processes. PSS counts shared memory once.\n\n" + table.Markdown()
}
