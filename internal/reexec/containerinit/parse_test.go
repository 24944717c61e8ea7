package containerinit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moby/sys/user"
	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/reexec/cparser"
)

const parsers = "testdata/parse.c"

// A configuration is libcontainer's initConfig, as far as the init uses it.
type configuration struct {
	Config           *configs.Config       `json:"config"`
	Args             []string              `json:"args"`
	Env              []string              `json:"env"`
	UID              int                   `json:"uid"`
	GID              int                   `json:"gid"`
	AdditionalGroups []int                 `json:"additional_groups"`
	Cwd              string                `json:"cwd"`
	CreateConsole    bool                  `json:"create_console"`
	PassedFilesCount int                   `json:"passed_files_count"`
	Capabilities     *configs.Capabilities `json:"capabilities"`
	NoNewPrivileges  bool                  `json:"no_new_privileges"`
	Rlimits          []configs.Rlimit      `json:"rlimits"`
	ContainerID      string                `json:"containerid"`
	Networks         []string              `json:"network"`
}

func example() *configuration {
	return &configuration{
		Config: &configs.Config{
			Rootfs: "/root", Mounts: []*configs.Mount{
				{Source: "proc", Destination: "/proc", Device: "proc", Flags: unix.MS_NOSUID},
				{Source: "/dev-of-pod", Destination: "/dev", Device: "bind", Flags: unix.MS_BIND | unix.MS_REC, PropagationFlags: []int{unix.MS_PRIVATE | unix.MS_REC}},
			},
			Namespaces: configs.Namespaces{{Type: configs.NEWNS}}, NoNewKeyring: true, Cgroups: &cgroups.Cgroup{Resources: &cgroups.Resources{}},
			MaskPaths: []string{"/proc/kcore"}, Hooks: configs.Hooks{configs.Prestart: nil},
		},
		Args: []string{"/proc/self/fd/3", "a", ""}, Env: []string{"A=\"b\\c\"\n\t<&>", "B=ü€😀\x7f\u2028"}, UID: 1000, AdditionalGroups: []int{5, 6},
		Cwd: "/", PassedFilesCount: 2, Capabilities: &configs.Capabilities{Bounding: []string{"CAP_CHOWN", "CAP_CHECKPOINT_RESTORE"}, Ambient: []string{"CAP_KILL"}},
	}
}

// want returns the answer for a configuration without errors.
func (c *configuration) want() []string {
	list := func(l []string) []string { return append([]string{fmt.Sprint(len(l))}, l...) }
	bits := func(names []string) (set uint64) {
		for _, name := range names {
			set |= 1 << map[string]int{"CAP_CHOWN": 0, "CAP_KILL": 5, "CAP_CHECKPOINT_RESTORE": 40}[name]
		}
		return set
	}
	w := slices.Concat([]string{"", c.Config.Rootfs, c.Cwd}, list(c.Args), list(c.Env),
		[]string{fmt.Sprint(c.UID), fmt.Sprint(bits(c.Capabilities.Bounding)), fmt.Sprint(bits(c.Capabilities.Ambient)), fmt.Sprint(len(c.AdditionalGroups)), fmt.Sprint(len(c.Config.Mounts))})
	for _, m := range c.Config.Mounts {
		w = append(w, m.Destination, fmt.Sprint(m.Flags))
	}
	return append(w, list(c.Config.MaskPaths)...)
}

func encode(t testing.TB, c *configuration) []byte {
	t.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The init reads the configuration as libcontainer's init would.
func TestConfiguration(t *testing.T) {
	p, c := cparser.New(t, parsers), example()
	if got := p.Parse(t, 'c', encode(t, c)); !slices.Equal(got, c.want()) {
		t.Errorf("%q\nwant %q", got, c.want())
	}
}

// The init refuses what it does not do or does not know.
func TestRefusedConfigurations(t *testing.T) {
	p := cparser.New(t, parsers)
	for name, change := range map[string]func(c *configuration){
		"a hook": func(c *configuration) {
			c.Config.Hooks = configs.Hooks{configs.CreateContainer: {configs.NewCommandHook(&configs.Command{Path: "/bin/true"})}}
		},
		"a sysctl":                   func(c *configuration) { c.Config.Sysctl = map[string]string{"net.a": "1"} },
		"a filter":                   func(c *configuration) { c.Config.Seccomp = &configs.Seccomp{DefaultAction: configs.Kill} },
		"a label":                    func(c *configuration) { c.Config.MountLabel = "label" },
		"a keyring":                  func(c *configuration) { c.Config.NoNewKeyring = false },
		"a terminal":                 func(c *configuration) { c.CreateConsole = true },
		"a network":                  func(c *configuration) { c.Networks = []string{"lo"} },
		"a /dev of libcontainer's":   func(c *configuration) { c.Config.Mounts = c.Config.Mounts[:1] },
		"a volume":                   func(c *configuration) { c.Config.Mounts[0].Destination = "/data" },
		"a mount with ids":           func(c *configuration) { c.Config.Mounts[0].IDMapping = &configs.MountIDMapping{Recursive: true} },
		"recursive attributes":       func(c *configuration) { c.Config.Mounts[0].RecAttr = &unix.MountAttr{Attr_set: 1} },
		"two kinds of propagation":   func(c *configuration) { c.Config.Mounts[1].PropagationFlags = []int{unix.MS_PRIVATE, unix.MS_SLAVE} },
		"a relative root":            func(c *configuration) { c.Config.Rootfs = "root" },
		"no program":                 func(c *configuration) { c.Args = nil },
		"a NUL in the environment":   func(c *configuration) { c.Env[0] = "A=\x00" },
		"a negative user":            func(c *configuration) { c.UID = -1 },
		"a user that is none":        func(c *configuration) { c.UID = 1<<32 - 1 },
		"an unknown capability":      func(c *configuration) { c.Capabilities.Ambient = []string{"CAP_NEW"} },
		"a name of a capability":     func(c *configuration) { c.Capabilities.Ambient = []string{"CHOWN"} },
		"a personality":              func(c *configuration) { c.Config.Personality = &configs.LinuxPersonality{Domain: 8} },
		"a user namespace's mapping": func(c *configuration) { c.Config.UIDMappings = []configs.IDMap{{Size: 1}} },
	} {
		c := example()
		change(c)
		if got := p.Parse(t, 'c', encode(t, c)); got[0] == "" {
			t.Errorf("%s is accepted: %q", name, got)
		}
	}
	for _, text := range []string{
		``, `{`, `{}`, `[]`, `{"config":{}}`, `{"args":["a"]`, `{"new":{"a":[0,1]}}`, `{"config":{"rootfs":"/a"}}`,
		strings.Repeat("[", 100) + strings.Repeat("]", 100), `{"version":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`,
		`{"uid":99999999999999999999999}`, `{"uid":1e3}`, `{"env":["\ud800"]}`, `{"env":["\ud800\u0041"]}`, `{"env":["\x"]}`, `{"env":["` + "\x01" + `"]}`,
		`{"env":[,]}`, `{"env":["a",]}`, `{"env":["a" "b"]}`, `{"env":"a"}`, `{"env"}`, `{"env":}`, `{null:1}`,
	} {
		if got := p.Parse(t, 'c', []byte(text)); got[0] == "" {
			t.Errorf("%s is accepted: %q", text, got)
		}
	}
}

// The init reads a number as Go does, also where it skips the value.
func TestNumbers(t *testing.T) {
	p, text := cparser.New(t, parsers), string(encode(t, example()))
	for _, c := range []struct {
		name, number string
		want         bool
	}{
		{"uid", "0", true}, {"uid", "01", false}, {"uid", "00", false}, {"uid", "1.0", false}, {"uid", "1e3", false}, {"uid", "+1", false}, {"uid", "", false},
		{"version", "0", true}, {"version", "-0.5e+10", true}, {"version", "10E2", true}, {"version", "00", false}, {"version", "-", false}, {"version", "1.", false},
		{"version", ".5", false}, {"version", "1e", false}, {"version", "--1", false}, {"version", "+1", false}, {"version", "1e+-1", false}, {"version", "", false},
	} {
		changed := strings.Replace(text, `"uid":1000`, `"uid":`+c.number, 1)
		if c.name == "version" {
			changed = strings.Replace(text, `"version":""`, `"version":`+c.number, 1)
		}
		if changed == text {
			t.Fatalf("no %s in %s", c.name, text)
		}
		if got := p.Parse(t, 'c', []byte(changed)); (got[0] == "") != c.want || json.Valid([]byte(changed)) != c.want && c.name == "version" {
			t.Errorf("%s %q: %q, want it accepted: %v", c.name, c.number, got[0], c.want)
		}
	}
}

func TestAnswers(t *testing.T) {
	p := cparser.New(t, parsers)
	for text, want := range map[string]string{
		`{"type":"procRun","flags":0}`: "procRun", `{"flags":0,"type":"procError","arg":{"message":"no"}}`: "", `{"type":"procRun","flags":1}`: "",
		``: "", `{}`: "", `{"type":"procRun"`: "", `{"type":null}`: "", `{"type":"procHooksDone"}`: "procHooksDone",
	} {
		if got := p.Parse(t, 's', []byte(text)); got[0] != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// passwdFiles are files of images.
var passwdFiles = []string{
	"root:x:0:0::/root:/bin/sh\nuser:x:1000:1000:a user:/home/user:/bin/sh\n", "  user:x:1000:1000::/a  ", "\n\nuser:x:1000:1000::/a:\nuser:x:1000:1::/b:\n",
	"user:x:1000:1000", "user:x:1000:1000::", "user:x: 1000:1::/a:", "user:x:+1000:1::/a:", "user:x:01000:1::/a:", "user:x:1000x:1::/a:\r\n", "user:x:1000:1::/a\r\n", ":", "", "user", "user:x:99999999999999999999:1::/a",
}

// The init finds the home directory that libcontainer's init would find.
func TestHome(t *testing.T) {
	p := cparser.New(t, parsers)
	for _, text := range passwdFiles {
		compareHomes(t, p, text)
	}
}

func compareHomes(t *testing.T, p *cparser.Parser, text string) {
	t.Helper()
	want := "none"
	if list, err := user.ParsePasswdFilter(strings.NewReader(text), func(u user.User) bool { return u.Uid == 1000 }); err != nil {
		return // libcontainer takes /
	} else if len(list) != 0 {
		want = list[0].Home
	}
	if got := p.Parse(t, 'p', []byte(text)); got[0] != want {
		t.Errorf("%q: home %q, want %q", text, got[0], want)
	}
}

func FuzzHome(f *testing.F) {
	p := cparser.New(f, parsers)
	for _, text := range passwdFiles {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "\x00") || strings.ContainsFunc(text, func(r rune) bool { return r > 0x7f }) {
			p.Parse(t, 'p', []byte(text)) // white space of other scripts is none here
			return
		}
		compareHomes(t, p, text)
	})
}

// What the init accepts, it reads as Go reads it.
func FuzzConfiguration(f *testing.F) {
	p := cparser.New(f, parsers)
	f.Add(encode(f, example()))
	f.Add([]byte(`{"config":{"rootfs":"/","mounts":[{"source":"","destination":"/dev","device":"bind"}],"no_new_keyring":true},"args":["\u00e9"],"env":[],"cwd":"/"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p.Parse(t, 's', text)
		got := p.Parse(t, 'c', text)
		if got[0] != "" {
			return
		}
		var value json.RawMessage
		if err := json.NewDecoder(bytes.NewReader(text)).Decode(&value); err != nil {
			t.Fatalf("Go refuses what the init accepts: %v", err)
		}
		var c configuration
		if err := json.Unmarshal(value, &c); err != nil || c.Config == nil {
			return // a part that only libcontainer's parent side uses has another type, or a name has another spelling
		}
		if c.Capabilities == nil {
			c.Capabilities = &configs.Capabilities{}
		}
		// Go accepts other spellings of a name, and replaces what is no UTF-8.
		once := func(name string) bool { return bytes.Count(bytes.ToLower(text), []byte(name)) == 1 }
		simple := !bytes.ContainsFunc(text, func(r rune) bool { return r > 0x7e || r == '\\' })
		if want := c.want(); simple && once("rootfs") && once("cwd") && !slices.Equal(got[:3], want[:3]) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
