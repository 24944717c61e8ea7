package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSummarise(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		times            []time.Duration
		min, median, max float64
	}{
		{nil, 0, 0, 0},
		{[]time.Duration{3 * ms}, 3, 3, 3},
		{[]time.Duration{9 * ms, 1 * ms, 2 * ms}, 1, 2, 9},
		{[]time.Duration{4 * ms, 1 * ms, 2 * ms, 8 * ms}, 1, 3, 8},
	} {
		if s := summarise(c.times); s.Min != c.min || s.Median != c.median || s.Max != c.max {
			t.Errorf("summarise(%v) = %+v, want %v/%v/%v", c.times, s, c.min, c.median, c.max)
		}
	}
}

func TestOwns(t *testing.T) {
	p := &account{ids: []uidRange{{1001, 1}, {100000, 65536}}}
	for uid, want := range map[uint64]bool{0: false, 1000: false, 1001: true, 1002: false, 99999: false, 100000: true, 165535: true, 165536: false} {
		if p.owns(uid) != want {
			t.Errorf("owns(%d) = %v", uid, !want)
		}
	}
}

// A ratio that has grown by more than a fifth is printed before all others.
func TestCompare(t *testing.T) {
	then := report{Times: map[string]map[string]summary{
		"exec true": {"podrun": {Median: 10}, "podman": {Median: 100}},
		"logs":      {"podrun": {Median: 10}, "podman": {Median: 40}},
		"gone":      {"podrun": {Median: 1}, "podman": {Median: 1}},
	}}
	now := report{Times: map[string]map[string]summary{
		"exec true": {"podrun": {Median: 26}, "podman": {Median: 200}}, // everything was slower, podrun even more so
		"logs":      {"podrun": {Median: 11}, "podman": {Median: 40}},
		"new":       {"podrun": {Median: 1}, "podman": {Median: 1}},
	}, Starts: map[string]summary{"podrun, cold": {Median: 9}, "floor": {Median: 3}}}
	lines, regressions := compare(then.ratios(), now.ratios())
	want := []string{"exec true\t1/10\t1/7.7\t+30 %\tWORSE\t", "logs\t1/4\t1/3.6\t+10 %\t\t"}
	if regressions != 1 || !slices.Equal(lines, want) {
		t.Errorf("compare = %d, %q, want 1, %q", regressions, lines, want)
	}
	for _, r := range now.ratios() {
		if strings.HasPrefix(r.Name, "start to exec") && (r.Name != "start to exec, cold, relative to floor" || r.Value != 3 || r.Target != 7) {
			t.Errorf("%+v", r)
		}
	}
}

// Every target belongs to a measured ratio, the headline is first, and the picture has its eight rows, whose labels fit.
func TestPlot(t *testing.T) {
	both := map[string]summary{"podrun": {Median: 1}, "podman": {Median: 2}}
	feet := map[string]footprint{"podrun": {PSS: 1}, "podman": {PSS: 9}}
	r := report{
		Times: map[string]map[string]summary{
			"exec true": both, "logs": both, "ps, 50 pods": both, atOnceTask: both, execTask + resting: both, oneMoreTask: both, connectionCPU: both,
		},
		Memory: map[string]map[string]footprint{
			shapes[1].title + ", just started": feet, shapes[1].title + ", idle": feet,
		},
		Read:   map[string]map[string]summary{firstUp: both},
		Costs:  &cost{Probe: map[string]map[string]float64{"exec true": {"podrun": 1, "podman": 60}, "httpGet": {"podrun": 1, "podman": 40}}},
		Starts: map[string]summary{"podrun, cold": {Median: 9}, "podrun, made early": {Median: 4}, "floor": {Median: 3}},
		Scale:  &scale{Pods: 300, Few: summary{Median: 1}, Many: summary{Median: 1}},
	}
	for _, s := range shapes {
		r.Times["up, "+s.title], r.Times["down, "+s.title], r.Times["down, "+s.title+resting], r.Times[lifeTask(s)] = both, both, both, both
	}
	reached := 0
	list := r.ratios()
	for i, x := range list {
		if x.Target > 0 {
			reached++
		}
		if i < len(shapes) && x.Name != lifeTask(shapes[i]) {
			t.Errorf("row %d is %s, want %s", i, x.Name, lifeTask(shapes[i]))
		}
	}
	if reached != len(targets) {
		t.Errorf("%d of %d targets belong to a ratio", reached, len(targets))
	}
	svg := plot("<a title>", list)
	if n := strings.Count(svg, `text-anchor="end"`); n != 8 || len(pictured) != 8 {
		t.Errorf("%d rows of %d", n, len(pictured))
	}
	for _, p := range pictured {
		if plotChar*len(p.label) > plotLeft-10 {
			t.Errorf("the label %q is cut", p.label)
		}
	}
	if err := xml.Unmarshal([]byte(svg), new(any)); err != nil {
		t.Errorf("the plot is no XML: %v", err)
	}
	if strings.Contains(r.page(list), "NaN") {
		t.Error("the page has NaN")
	}
	if n := strings.Count(plot("", nil), `text-anchor="end"`); n > 0 {
		t.Errorf("%d rows of nothing", n)
	}
}

// A target is a ratio, or a figure: it is reached by the figure, whatever the other engine takes.
func TestNewRatio(t *testing.T) {
	for _, c := range []struct {
		name   string
		a, b   float64
		bar    string
		missed bool
	}{
		{"logs", 10, 50, "at most 1/5", false},
		{"logs", 11, 50, "at most 1/5", true},
		{execTask + resting, 9, 5, "at most 9 ms", false},
		{execTask + resting, 9.1, 500, "at most 9 ms", true},
		{"no target", 9, 5, "", false},
	} {
		if r := newRatio(c.name, c.a, c.b, "", ""); r.Bar != c.bar || r.missed() != c.missed {
			t.Errorf("%+v: %q, missed: %v", c, r.Bar, r.missed())
		}
	}
}

// Small figures have decimals.
func TestSummaryText(t *testing.T) {
	for want, s := range map[string]summary{
		"": {}, "0.10 / 0.17 / 2.00": {Min: .1, Median: .17, Max: 2}, "8.6 / 9.0 / 39.0": {Min: 8.6, Median: 9, Max: 39}, "26 / 26 / 27": {Min: 25.6, Median: 26, Max: 27},
	} {
		if got := s.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Connections have podrun's figures beside pasta's, in milliseconds.
func TestAddConnections(t *testing.T) {
	file := filepath.Join(t.TempDir(), "netbench.json")
	text := `{"in: connections/s": {"podrun": [5000, 4000], "pasta": [10000], "veth": [20000]}, "in: CPU of a connection, ms": {"podrun": [0.3], "pasta": [0.2]}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := report{Times: map[string]map[string]summary{}}
	if err := r.addConnections(file); err != nil {
		t.Fatal(err)
	}
	for task, want := range map[string][2]float64{connectionTask: {0.225, 0.1}, connectionCPU: {0.3, 0.2}} {
		if got := [2]float64{r.Times[task]["podrun"].Median, r.Times[task]["podman"].Median}; got != want {
			t.Errorf("%s: %v, want %v", task, got, want)
		}
	}
}

// A value that was not measured, on one side or both, is empty in the table and has no quotient.
func TestPrintWithoutPeer(t *testing.T) {
	ours := map[string]summary{"podrun": {Min: 26, Median: 26, Max: 26}}
	r := report{
		Times:  map[string]map[string]summary{"ps, 100 pods": ours},
		Calls:  map[string]map[string]int{"ps, 100 pods": {"podrun": 5}},
		Memory: map[string]map[string]footprint{"1 container, idle": {"podrun": {Processes: 2, PSS: 9, Each: map[string]share{"init": {2, 9}}}}},
		Starts: map[string]summary{"podrun, cold": {Min: 9, Median: 9, Max: 9}},
		Images: &imageCost{Pulls: map[string]map[string]pullCost{"load": {"podrun": {Milliseconds: 3}}}},
	}
	var b strings.Builder
	r.print(&b)
	for _, wrong := range []string{"Inf", "NaN", "0 / 0", " times ", "1/0"} {
		if strings.Contains(b.String(), wrong) {
			t.Errorf("%q in\n%s", wrong, b.String())
		}
	}
	// The columns of a table end with a tab: without it a column runs into the next.
	for _, line := range slices.Concat(r.Images.lines(), r.startLines()) {
		if !strings.HasSuffix(line, "\t") {
			t.Errorf("no tab at the end of %q", line)
		}
	}
	if !strings.Contains(b.String(), "1 container, idle, podrun: 2 init 9 KiB\n") {
		t.Errorf("no memory by process in\n%s", b.String())
	}
	if len(r.ratios()) > 0 {
		t.Errorf("ratios to nothing: %v", r.ratios())
	}
}

// Runs of another length, or with other load, are compared, and the difference is printed.
func TestUnlike(t *testing.T) {
	a := report{Rounds: 5, CPUs: 2, Kernel: "6.1", PodmanVersion: "podman version 4.3.1", Load: "0.30"}
	if list := differences(a, a); len(list) > 0 {
		t.Errorf("a run is not like itself: %q", list)
	}
	b := a
	b.Rounds, b.Load = 2, "2.10"
	want := []string{"rounds 5 then, 2 now", "load 0.30 then, 2.10 now"}
	if list := differences(a, b); !slices.Equal(list, want) {
		t.Errorf("unlike = %q, want %q", list, want)
	}
	b = a
	b.Load = "" // from before it was recorded
	if list := differences(b, a); !slices.Equal(list, []string{"load unknown then, 0.30 now"}) {
		t.Errorf("unlike = %q", list)
	}
}

// The summary is replaced as a whole, without rows that were not measured; a text without marks is not written.
func TestSummary(t *testing.T) {
	pod := shapes[1].title
	r := report{CPUs: 2, Rounds: 5, PodmanVersion: "podman version 5.8.2", Podman: "--network pasta",
		Times: map[string]map[string]summary{
			lifeTask(shapes[1]): {"podrun": {Median: 100}, "podman": {Median: 550}},
			"up, " + pod:        {"podrun": {Median: 129}, "podman": {Median: 645}}, execTask: {"podrun": {Median: 5}, "podman": {Median: 50}},
		},
		Read:   map[string]map[string]summary{firstUp: {"podrun": {Median: 40}, "podman": {Median: 40}}},
		Memory: map[string]map[string]footprint{pod + ", idle": {"podrun": {PSS: 1024}, "podman": {PSS: 2048}}},
	}
	got, err := withSummary("a\n"+tableFrom+"old\n"+tableTo+"b\n", r)
	want := "a\n" + tableFrom + "Medians of 5 rounds on 2 processors, with podman 5.8.2 --network pasta:\n\n|  | podrun | podman | ratio |\n|---|---|---|---|\n" +
		"| processor time of a pod's life (`up -d`, 4 s, `down`), 1 init + 2 apps | 100 ms | 550 ms | 1/5.5 |\n" +
		"| `up -d`, 1 init + 2 apps | 129 ms | 645 ms | 1/5 |\n| `exec … true` | 5.0 ms | 50.0 ms | 1/10 |\n" +
		"| read from a cold disk by the first `up -d`, 1 container | 40 MiB | 40 MiB | 1.00 |\n" +
		"| its own memory (PSS) when the pod is at rest | 1.0 MB | 2.0 MB | 1/2 |\n" + tableTo + "b\n"
	if err != nil || got != want {
		t.Errorf("withSummary = %q, %v, want %q", got, err, want)
	}
	if _, err := withSummary("nothing", r); err == nil {
		t.Error("a text without marks is no error")
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := withSummary(string(readme), r); err != nil {
		t.Errorf("README.md: %v", err)
	}
}

// A line of a trace counts where a call begins: not where it is resumed, and not where a process
// exits.
func TestCallsIn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace")
	text := "12 execve(\"\"..., 0x1, 0x2) = 0\n12 wait4(-1,  <unfinished ...>\n13 exit_group(0) = ?\n13 +++ exited with 0 +++\n12 <... wait4 resumed>) = 13\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := callsIn(file); n != 3 || err != nil {
		t.Errorf("callsIn = %d, %v, want 3", n, err)
	}
}

func TestWithoutPodmanIdleTime(t *testing.T) {
	var f figures
	for took, want := range map[time.Duration]time.Duration{time.Second: time.Second, 20*time.Second + 5: 5, 41 * time.Second: time.Second} {
		if got := f.withoutIdle(took); got != want {
			t.Errorf("%v: %v", took, got)
		}
	}
	if f.idled != 3*idlePatience {
		t.Errorf("%v in all", f.idled)
	}
	r := report{PodmanIdled: f.idled.Seconds()}
	if page := r.page(nil); !strings.Contains(page, "waits 20s") || !strings.Contains(page, "60 s in all") {
		t.Error(page)
	}
}
