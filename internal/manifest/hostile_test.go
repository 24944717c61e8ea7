package manifest_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/manifest"
)

// hostileEnv names the hostile input for a child process, so that its memory can be measured alone.
const hostileEnv = "PODRUN_TEST_HOSTILE"

const (
	// maxTime bounds the processor time. No input takes a second.
	maxTime = 10 * time.Second
	maxRSS  = 128 * mib
)

// hostile are inputs that cost a careless decoder seconds, gigabytes or a crash, with a part of the expected
// error.
var hostile = map[string]struct {
	input func() string
	want  string
}{
	"10 MB":               {func() string { return strings.Repeat("a", 10_000_000) }, "larger than 1 MiB"},
	"10 MB of documents":  {func() string { return strings.Repeat("a: b\n---\n", 1_200_000) }, "more"},
	"10 MB of separators": {func() string { return strings.Repeat("---\n", 2_500_000) }, "no object"},
	"100,000 keys":        {func() string { return podYAML(one("")) + keys("k", 100_000) }, "values"},
	"100,000 fields":      {func() string { return "apiVersion: v1\nkind: Pod\nspec:\n" + keys("  imagePullPolic", 40_000) }, "and more"},
	"100,000 labels": {func() string {
		return "apiVersion: v1\nkind: Pod\nspec: {}\nmetadata:\n  labels:\n" + keys("    k", 49_000)
	}, "Required value"},
	"dense list":    {func() string { return "[" + strings.Repeat("1,", mib/2-2) + "1]" }, "values"},
	"dense maps":    {func() string { return "[" + strings.Repeat("{},", mib/3-2) + "1]" }, "values"},
	"open brackets": {func() string { return strings.Repeat("[", mib-1) }, "invalid YAML"},
	"open braces":   {func() string { return strings.Repeat("{a: ", mib/4-1) }, "invalid YAML"},
	"deep":          {func() string { return strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) }, "a list"},
	"deep many times": {func() string {
		return "[" + strings.Repeat(strings.Repeat("[", 9_000)+strings.Repeat("]", 9_000)+",", 10) + "]"
	}, "a list"},
	"deep duplicates": {func() string { return strings.Repeat("{a: ", 4_000) + "{b: 1, b: 2}" + strings.Repeat("}", 4_000) }, "given twice"},
	"dashes":          {func() string { return strings.Repeat("- ", mib/2-1) }, "invalid YAML"},
	"question marks":  {func() string { return strings.Repeat("? ", mib/2-1) }, "invalid YAML"},
	"alias bomb":      {aliasBomb, "aliases"},
	"alias of a long text": {func() string {
		return "a: &a " + strings.Repeat("x", mib/2) + "\nb: [" + strings.Repeat("*a,", mib/8) + "]\n"
	}, "aliases"},
	"alias in itself":      {func() string { return "a: &a [*a]\n" }, "contains itself"},
	"alias in itself, far": {func() string { return "a: &a {b: &b {c: [*a, *b]}}\n" }, "contains itself"},
	"merges":               {func() string { return mergeBomb() }, "aliases"},
	"long quantity": {func() string {
		return podYAML(one("resources: {limits: {cpu: " + strings.Repeat("1", 1_000_000) + "}}"))
	}, "a quantity of 1000000 characters"},
	"long fraction": {func() string {
		return podYAML(one("resources: {limits: {cpu: '0." + strings.Repeat("1", 1_000_000) + "'}}"))
	}, "characters; at most"},
	"huge exponent":       {func() string { return podYAML(one("resources: {limits: {cpu: 1e1000000}}")) }, "out of range"},
	"tiny exponent":       {func() string { return podYAML(one("resources: {limits: {cpu: '1e-1000000'}}")) }, "out of range"},
	"exponent that wraps": {func() string { return podYAML(one("resources: {limits: {cpu: 1e99999999999999999999}}")) }, "not a quantity"},
	"2^64":                {func() string { return podYAML(one("resources: {limits: {memory: 18446744073709551616}}")) }, "out of range"},
	"9,999 documents":     {func() string { return strings.Repeat("kind: Pod\n---\n", 9_999) }, "and more"},
	"2^63 in exbibytes":   {func() string { return podYAML(one("resources: {limits: {memory: 8Ei}}")) }, "out of range"},
	"unknown names":       {func() string { return podYAML("{" + strings.Repeat(strings.Repeat("x", 1000)+": 1, ", 500) + "}") }, "unknown field"},
	"long name": {func() string {
		return strings.Replace(podYAML(one("")), "name: p", "name: "+strings.Repeat("p", mib/2), 1)
	}, "no more than 253"},
	"references to nowhere": {func() string {
		return podYAML(one("env: [" + strings.Repeat("{name: a, value: $(a)$(a)$(a)$(a)},", 10_000) + "], volumeDevices: [{name: a, devicePath: /dev/a}]"))
	}, "volumeDevices"},
}

func keys(prefix string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d: a\n", prefix, i)
	}
	return b.String()
}

func aliasBomb() string {
	b := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		b += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 9), ","))
	}
	return b
}

func mergeBomb() string {
	b := "a0: &a0 {k: v}\n"
	for i := range 30 {
		b += fmt.Sprintf("a%d: &a%d {<<: [*a%d, *a%d]}\n", i+1, i+1, i, i)
	}
	return b
}

// takeHostile runs in the child: it loads one input and prints the error.
func takeHostile(name string) {
	_, err := manifest.Load("f", []byte(hostile[name].input()))
	if err != nil {
		fmt.Print(err)
	}
}

// TestHostileInput: every one is refused, in bounded time and memory.
func TestHostileInput(t *testing.T) {
	for name, test := range hostile {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), hostileEnv+"="+name)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %.300s", err, out)
			}
			if !strings.Contains(string(out), test.want) {
				t.Errorf("%q is not in %.300q", test.want, out)
			}
			if len(out) > mib {
				t.Errorf("a message of %d bytes", len(out))
			}
			// Processor time does not depend on other load of the machine.
			took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			rss := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
			t.Logf("%v, %d MiB", took.Round(time.Millisecond), rss/mib)
			if took > maxTime {
				t.Errorf("took %v", took)
			}
			if rss > maxRSS {
				t.Errorf("took %d MiB", rss/mib)
			}
		})
	}
}
