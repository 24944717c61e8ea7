package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

func objectDirsOf(t *testing.T) Dirs {
	root := t.TempDir()
	d := Dirs{Data: filepath.Join(root, "data"), Runtime: filepath.Join(root, "run")}
	for _, dir := range []string{d.Data, d.Runtime} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func TestObjectsAreKept(t *testing.T) {
	d := objectDirsOf(t)
	long := strings.Repeat("a", 253)
	for _, o := range []*pod.Object{
		{Kind: pod.KindConfigMap, Namespace: "b", Name: "one", ConfigMap: &pod.ConfigMap{Data: map[string]string{"k": "v"}}},
		{Kind: pod.KindConfigMap, Namespace: "a", Name: long, ConfigMap: &pod.ConfigMap{}},
		{Kind: pod.KindSecret, Namespace: "a", Name: "one", Secret: &pod.Secret{Data: map[string][]byte{"k": {0, 255}}}},
		{Kind: pod.KindNamespace, Name: "a"},
	} {
		if err := d.PutObject(o); err != nil {
			t.Fatal(err)
		}
	}
	all, err := d.Objects(pod.KindConfigMap, "")
	if err != nil || len(all) != 2 || all[0].Name != long || all[1].ConfigMap.Data["k"] != "v" {
		t.Errorf("all: %v %v", all, err)
	}
	if list, err := d.Objects(pod.KindConfigMap, "b"); err != nil || len(list) != 1 {
		t.Errorf("of b: %v %v", list, err)
	}
	if none, err := d.Objects(pod.KindService, ""); err != nil || len(none) != 0 {
		t.Errorf("services: %v %v", none, err)
	}
	if spaces, err := d.Objects(pod.KindNamespace, ""); err != nil || len(spaces) != 1 {
		t.Errorf("namespaces: %v %v", spaces, err)
	}
	if s, err := d.Object(pod.KindSecret, "a", "one"); err != nil || !bytes.Equal(s.Secret.Data["k"], []byte{0, 255}) {
		t.Errorf("secret: %v %v", s, err)
	}
	if err := d.DeleteObject(pod.KindConfigMap, "b", "one"); err != nil {
		t.Error(err)
	}
	if _, err := d.Object(pod.KindConfigMap, "b", "one"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after delete: %v", err)
	}
	if err := d.DeleteObject(pod.KindConfigMap, "b", "one"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("second delete: %v", err)
	}
}

// A Secret is never in the data directory, only its user can read it, and it is found with another
// runtime directory, as after a login.
func TestSecretsAreInMemoryOnly(t *testing.T) {
	d := objectDirsOf(t)
	o := &pod.Object{Kind: pod.KindSecret, Namespace: "a", Name: "one", Secret: &pod.Secret{Data: map[string][]byte{"k": []byte("hush")}}}
	if err := d.PutObject(o); err != nil {
		t.Fatal(err)
	}
	filepath.WalkDir(d.Data, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			t.Errorf("%s is in the data directory", path)
		}
		return err
	})
	file := filepath.Join(d.Runtime, "objects", "secrets", "a", "one")
	for path, want := range map[string]fs.FileMode{file: 0o600, filepath.Dir(file): 0o700, filepath.Join(d.Runtime, "objects"): 0o700} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, st.Mode(), err)
		}
	}
	later := Dirs{Data: d.Data, Runtime: t.TempDir()}
	if s, err := later.Object(pod.KindSecret, "a", "one"); err != nil || string(s.Secret.Data["k"]) != "hush" {
		t.Errorf("after a login: %v %v", s, err)
	}
	if err := os.RemoveAll(d.Runtime); err != nil { // a reboot
		t.Fatal(err)
	}
	if _, err := later.Object(pod.KindSecret, "a", "one"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after a reboot: %v", err)
	}
	if err := later.PutObject(o); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(later.Runtime, "objects", "secrets", "a", "one")); err != nil {
		t.Error(err)
	}
}

func TestObjectNamesStayInside(t *testing.T) {
	d := objectDirsOf(t)
	for _, name := range []string{"", ".", "..", "../x", "a/b", ".hidden", "a\x00b", strings.Repeat("a", 254)} {
		for _, o := range []*pod.Object{
			{Kind: pod.KindConfigMap, Namespace: "default", Name: name},
			{Kind: pod.KindConfigMap, Namespace: name, Name: "x"},
			{Kind: pod.KindNamespace, Name: name},
		} {
			if err := d.PutObject(o); err == nil {
				t.Errorf("%q was taken: %+v", name, o)
			}
			if _, err := d.Object(o.Kind, o.Namespace, o.Name); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%q was looked for: %v", name, err)
			}
		}
	}
	if err := d.PutObject(&pod.Object{Kind: "../x", Namespace: "a", Name: "b"}); err == nil {
		t.Error("an unknown kind was taken")
	}
}

// A damaged object hides no other. The error names it with a hint, and it can be deleted.
func TestCorruptObjects(t *testing.T) {
	d := objectDirsOf(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		if err := d.PutObject(&pod.Object{Kind: pod.KindConfigMap, Namespace: "n", Name: name, ConfigMap: &pod.ConfigMap{}}); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(d.Data, "objects", "configmaps", "n")
	for name, text := range map[string]string{"a": "rubbish", "b": "{}", "c": `{"kind":"ConfigMap","namespace":"n","name":"d","configMap":{}}`, ".half": "{"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := d.Objects(pod.KindConfigMap, "")
	if len(list) != 1 || list[0].Name != "d" || err == nil || strings.Count(err.Error(), "read ConfigMap n/") != 3 {
		t.Errorf("%v %v", list, err)
	}
	if !errors.As(err, new(CorruptError)) {
		t.Errorf("the error does not report that the rest is there: %v", err)
	}
	if _, err := d.Object(pod.KindConfigMap, "n", "a"); !strings.Contains(report.Hint(err), "podrun delete configmap a") {
		t.Errorf("%v, hint %q", err, report.Hint(err))
	}
	if err := d.DeleteObject(pod.KindConfigMap, "n", "a"); err != nil {
		t.Error(err)
	}
}

// An object that is temporarily unreadable is not reported as damaged, and the list reports an
// error.
func TestObjectsAreNotSeen(t *testing.T) {
	d := objectDirsOf(t)
	if err := d.PutObject(&pod.Object{Kind: pod.KindConfigMap, Namespace: "n", Name: "a", ConfigMap: &pod.ConfigMap{}}); err != nil {
		t.Fatal(err)
	}
	var oneErr, all error
	withoutDescriptors(t, func() {
		_, oneErr = d.Object(pod.KindConfigMap, "n", "a")
		_, all = d.Objects(pod.KindConfigMap, "n")
	})
	for _, err := range []error{oneErr, all} {
		if !IsExhausted(err) || errors.As(err, new(CorruptError)) || report.Hint(err) != "" {
			t.Errorf("%v, hint %q", err, report.Hint(err))
		}
	}
}
