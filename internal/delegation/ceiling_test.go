package delegation

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestCeiling(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string // below the mount
		own   string
		want  Ceiling
	}{
		"no limits":           {nil, "0::" + scope + "\n", Ceiling{}},
		"max":                 {map[string]string{user + "/memory.max": "max\n", user + "/cpu.max": "max 100000\n"}, "0::" + scope + "\n", Ceiling{}},
		"of the user's slice": {map[string]string{"/user.slice/user-1000.slice/memory.max": "2147483648\n", "/user.slice/user-1000.slice/cpu.max": "150000 100000\n"}, "0::" + scope + "\n", Ceiling{MilliCPU: 1500, Memory: 2 << 30}},
		"the smaller of two":  {map[string]string{"/user.slice/memory.max": "2147483648\n", user + "/memory.max": "1073741824\n", "/user.slice/cpu.max": "50000 100000\n", user + "/cpu.max": "max 100000\n"}, "0::" + scope + "\n", Ceiling{MilliCPU: 500, Memory: 1 << 30}},
		"what is left": {map[string]string{
			"/user.slice/memory.max": "2000\n", "/user.slice/memory.current": "1900\n", "/user.slice/memory.stat": "anon 1\ninactive_file 100\n",
			user + "/memory.max": "1000\n", user + "/memory.current": "500\n", user + "/memory.stat": "anon 1\ninactive_file 50\n",
			"/user.slice/pids.max": "100\n", "/user.slice/pids.current": "120\n", user + "/pids.max": "max\n", user + "/pids.current": "7\n",
		}, "0::" + scope + "\n", Ceiling{Memory: 1000, AvailableMemory: new(int64(200)), Processes: 100, AvailableProcesses: new(int64(0))}},
		"not the process's own":      {map[string]string{scope + "/memory.max": "4096\n"}, "0::" + scope + "\n", Ceiling{}},
		"not what the kernel writes": {map[string]string{user + "/memory.max": "much\n", user + "/cpu.max": "100 0\n"}, "0::" + scope + "\n", Ceiling{}},
		"the process is in the root": {map[string]string{}, "0::/\n", Ceiling{}},
		"only cgroups of version 1":  {map[string]string{user + "/memory.max": "4096\n"}, "1:memory:/\n", Ceiling{}},
	} {
		v := fake(t, tc.own, v2Mount, nil)
		for path, text := range tc.files {
			path = filepath.Join(v.root, Mount, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := v.ceiling(); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
