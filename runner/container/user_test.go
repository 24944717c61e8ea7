package container

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/runner/sandbox"
)

// A numeric user of an image without a passwd entry gets no identity from an entry whose name is that
// number. The groups are the requested ones and the groups of the image's group file, no others (CVE-2023-25173,
// CVE-2022-2989, CVE-2026-46680).
func TestImagesWithDeceivingUsers(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"passwd": "root:x:0:0::/:\n4294967296:x:0:0::/:\n1000:x:0:0::/:\nten:x:10:20::/:\n-1:x:0:0::/:\nhuge:x:4294967296:0::/:\n",
		"group":  "root:x:0:\nwheel:x:10:ten\nmany:x:30:ten,other\nnotmine:x:40:other\n",
	} {
		if err := os.WriteFile(filepath.Join(root, "etc", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		user   string
		groups []uint32
		want   string // "": refused
	}{
		{"4294967296", nil, ""},
		{"-1", nil, ""},
		{"huge", nil, ""},
		{"0", nil, ""},
		{"", nil, ""},
		{"root", nil, ""},
		{"ten", nil, "10:20 20,10,30"},
		{"ten", []uint32{50, 30}, "10:20 20,10,30,50"},
		{"10:99", nil, "10:99 99"},
		{"12345", []uint32{7}, "12345:0 0,7"},
	} {
		who, err := resolveUser(root, &pod.Container{User: test.user, NonRoot: true, SupplementalGroups: test.groups}, sandbox.IDMapped)
		got := ""
		if err == nil {
			var groups []string
			for _, g := range who.groups {
				groups = append(groups, strconv.Itoa(g))
			}
			got = fmt.Sprintf("%d:%d %s", who.uid, who.gid, strings.Join(groups, ","))
		}
		if got != test.want {
			t.Errorf("%q, %v: got %q, %v, want %q", test.user, test.groups, got, err, test.want)
		}
	}
}

// Strict: the image's group file has no effect.
func TestStrictGroups(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"passwd": "u:x:1000:1000::/:/bin/sh\n", "group": "u:x:1000:\nextra:x:50:u\n"} {
		if err := os.WriteFile(filepath.Join(root, "etc", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for strict, want := range map[bool]int{false: 3, true: 2} {
		who, err := resolveUser(root, &pod.Container{User: "u", SupplementalGroups: []uint32{60}, GroupsStrict: strict}, sandbox.IDMapped)
		if err != nil || who.gid != 1000 || len(who.groups) != want {
			t.Errorf("strict %v: %+v, %v", strict, who, err)
		}
	}
}

// A user with more groups than the kernel allows is refused before each group is looked up.
func TestTooManyGroups(t *testing.T) {
	root := t.TempDir()
	if err := testenv.BusyboxRootfs(root); err != nil {
		t.Fatal(err)
	}
	var groups strings.Builder
	for i := range maxGroups + 1 {
		fmt.Fprintf(&groups, "g:x:%d:user\n", i)
	}
	if err := os.WriteFile(root+"/etc/group", []byte(groups.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := resolveUser(root, &pod.Container{User: "user"}, func(string, int) bool { t.Error("each was looked for"); return false })
	if err == nil || !strings.Contains(err.Error(), "a process has 65536 at the most") {
		t.Errorf("too many groups: %v", err)
	}
}

// TestGroupsByName: names are the image's; a number needs no name, and the number of the host's group of that name is
// in the error.
func TestGroupsByName(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "etc", "group"), []byte("video:x:44:\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	who, err := resolveUser(root, &pod.Container{User: "7", Groups: []string{"video", "50"}}, sandbox.IDMapped)
	if got := fmt.Sprint(who.groups); err != nil || got != "[0 44 50]" {
		t.Errorf("groups %s, %v", got, err)
	}
	for name, want := range map[string]string{"root": "; on this host its number is 0: use the number", "no-such-group": `find group "no-such-group" in the image's /etc/group`} {
		if _, err := resolveUser(root, &pod.Container{Groups: []string{name}}, sandbox.IDMapped); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
