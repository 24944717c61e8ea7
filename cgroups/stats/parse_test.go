package stats

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recorded returns the files of a cgroup as recorded on a kernel 6.1.
func recorded() map[string]string {
	const psi = "some avg10=12.50 avg60=3.00 avg300=0.50 total=123456\nfull avg10=1.00 avg60=0.00 avg300=0.00 total=1\n"
	return map[string]string{
		"cpu.stat":            "usage_usec 1234567\nuser_usec 1000000\nsystem_usec 234567\nnr_periods 10\nnr_throttled 2\nthrottled_usec 5000\n",
		"cpu.max":             "50000 100000\n",
		"cpu.pressure":        psi,
		"memory.current":      "104857600\n",
		"memory.stat":         "anon 4096\nfile 50000000\nfile_mapped 8192\nactive_file 1\ninactive_file 52428800\nslab 7\nkernel 11\npgfault 13\npgmajfault 5\n",
		"memory.peak":         "204857600\n",
		"memory.max":          "134217728\n",
		"memory.events":       "low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n",
		"memory.swap.current": "16384\n",
		"memory.pressure":     "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		"pids.current":        "7\n",
		"pids.max":            "max\n",
		"io.stat":             "254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n8:0 rbytes=1 wbytes=2 rios=1 wios=1 dbytes=0 dios=0\n",
		"io.pressure":         psi,
	}
}

func TestParse(t *testing.T) {
	all := Sample{
		CPU: new(1234567 * time.Microsecond), User: new(time.Second), System: new(234567 * time.Microsecond),
		Throttle: Throttle{new(int64(10)), new(int64(2)), new(5 * time.Millisecond)},
		Memory:   new(int64(50 << 20)), Charged: new(int64(100 << 20)), RSS: new(int64(4096)), Cache: new(int64(50000000)), Mapped: new(int64(8192)),
		Peak: new(int64(204857600)), Kernel: new(int64(11)), Active: new(int64(1)), Inactive: new(int64(50 << 20)), Faults: Faults{new(int64(13)), new(int64(5))},
		Swap: new(int64(16384)), OOMKills: new(int64(2)), Pids: new(int64(7)),
		Read: new(int64(4097)), Written: new(int64(8194)), Reads: new(int64(2)), Writes: new(int64(3)),
		Pressure: Pressure{new(12.5), new(0.0), new(12.5)},
		Limits:   Limits{CPU: new(int64(500)), CPUQuota: new(int64(50000)), CPUPeriod: new(int64(100000)), Memory: new(int64(128 << 20))},
	}
	for _, tt := range []struct {
		name   string
		change map[string]string // "-": the file is missing
		want   func(*Sample)
		bad    bool
	}{
		{"everything", nil, func(*Sample) {}, false},
		{"no memory controller", map[string]string{"memory.current": "-", "memory.stat": "-", "memory.max": "-", "memory.pressure": "-", "memory.events": "-", "memory.swap.current": "-", "memory.peak": "-"},
			func(s *Sample) {
				s.Memory, s.Charged, s.RSS, s.Cache, s.Mapped, s.Swap, s.OOMKills = nil, nil, nil, nil, nil, nil, nil
				s.Peak, s.Kernel, s.Active, s.Inactive, s.Faults = nil, nil, nil, nil, Faults{}
				s.Limits.Memory, s.Pressure.Memory = nil, nil
			}, false},
		{"no limits", map[string]string{"cpu.max": "max 100000\n", "memory.max": "max\n"}, func(s *Sample) { s.Limits = Limits{CPUPeriod: new(int64(100000))} }, false},
		{"no pressure", map[string]string{"cpu.pressure": "-", "memory.pressure": "-", "io.pressure": "-"}, func(s *Sample) { s.Pressure = Pressure{} }, false},
		{"pressure of an old kernel", map[string]string{"cpu.pressure": "some avg10=1.00 avg60=0.00 avg300=0.00 total=1\n"}, func(s *Sample) { s.Pressure.CPU = new(1.0) }, false},
		{"nothing read or written", map[string]string{"io.stat": ""}, func(s *Sample) {
			s.Read, s.Written, s.Reads, s.Writes = new(int64), new(int64), new(int64), new(int64)
		}, false},
		{"io that tells of nothing", map[string]string{"io.stat": "7:0 \n254:0 rbytes=5 wbytes=0\n"}, func(s *Sample) {
			s.Read, s.Written, s.Reads, s.Writes = new(int64(5)), new(int64), new(int64), new(int64)
		}, false},
		{"more inactive than all", map[string]string{"memory.current": "1\n"}, func(s *Sample) { s.Memory, s.Charged = new(int64), new(int64(1)) }, false},
		{"rubbish", map[string]string{"memory.current": "a lot\n"}, nil, true},
		{"a quota without a period", map[string]string{"cpu.max": "5000\n"}, nil, true},
		{"a number too large", map[string]string{"pids.current": "99999999999999999999\n"}, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := recorded()
			for name, text := range tt.change {
				files[name] = text
				if text == "-" {
					delete(files, name)
				}
			}
			got, err := parse(files)
			if tt.bad {
				if err == nil {
					t.Errorf("no error: %+v", got)
				}
				return
			}
			want := all
			tt.want(&want)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for name, text := range recorded() {
		f.Add(name, text)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		s, err := parse(map[string]string{name: text})
		if err == nil && s.Memory != nil && *s.Memory < 0 && name != "memory.current" {
			t.Errorf("%+v", s)
		}
	})
}

func TestCPUBetween(t *testing.T) {
	began := time.Now()
	moment := func(after, used time.Duration) Sample { return Sample{At: began.Add(after), CPU: &used} }
	for _, tt := range []struct {
		name          string
		before, after Sample
		want          *int64
	}{
		{"one processor", moment(0, time.Second), moment(time.Second, 2*time.Second), new(int64(1000))},
		{"next to nothing", moment(0, 0), moment(time.Second, time.Microsecond), new(int64(1))},
		{"nothing", moment(0, 5), moment(time.Second, 5), new(int64(0))},
		{"a new group", moment(0, time.Hour), moment(time.Second, 500*time.Millisecond), new(int64(500))},
		{"no time", moment(0, 0), moment(0, 0), nil},
		{"not known", Sample{At: began}, moment(time.Second, 5), nil},
	} {
		if diff := cmp.Diff(tt.want, CPUBetween(tt.before, tt.after)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no group: %v", err)
	}
	for name, text := range recorded() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Read(dir)
	if err != nil || s.Memory == nil || *s.Memory != 50<<20 || s.At.IsZero() {
		t.Errorf("%+v, %v", s, err)
	}
}
