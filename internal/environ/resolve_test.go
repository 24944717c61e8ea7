package environ

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

// sources returns two objects, a Service and a file.
func sources() Sources {
	objects := map[string]*pod.Object{
		"ConfigMap web": {ConfigMap: &pod.ConfigMap{Data: map[string]string{"color": "blue", "a.b": "dots", "REF": "$(color)"}, BinaryData: map[string][]byte{"blob": {0}}}},
		"Secret key":    {Secret: &pod.Secret{Data: map[string][]byte{"password": []byte("hush"), "nul": {'a', 0}}}},
	}
	return Sources{
		Object: func(kind pod.ObjectKind, name string) (*pod.Object, error) {
			if o := objects[string(kind)+" "+name]; o != nil {
				return o, nil
			}
			return nil, fmt.Errorf("read: %w", fs.ErrNotExist)
		},
		Services: func() ([]*pod.Object, error) {
			return []*pod.Object{{Name: "my-db", Service: &pod.Service{ClusterIPs: []string{"10.0.0.7"}, Ports: []pod.ServicePort{{Protocol: "TCP", Port: 5432}}}}}, nil
		},
		Field: func(path string) (string, error) { return "<" + path + ">", nil },
		File: func(volume, path string) ([]byte, error) {
			if volume+"/"+path != "v/f" {
				return nil, fs.ErrNotExist
			}
			return []byte("# c\nA='one'\nB='two\nlines' # c\nC= 'x'\n"), nil
		},
	}
}

func key(name string, k pod.KeyRef) pod.EnvVar {
	return pod.EnvVar{Name: name, From: &pod.EnvRef{Key: &k}}
}

func file(path, key string, optional bool) pod.EnvVar {
	return pod.EnvVar{Name: "F", From: &pod.EnvRef{File: &pod.FileRef{Volume: "v", Path: path, Key: key, Optional: optional}}}
}

func TestResolve(t *testing.T) {
	text := "$(A)"
	web, secret := pod.KeyRef{Kind: pod.KindConfigMap, Name: "web", Key: "color"}, pod.KeyRef{Kind: pod.KindSecret, Name: "key", Key: "password"}
	for name, test := range map[string]struct {
		c     pod.Container
		links bool
		want  []string // "!" before an error
	}{
		"nothing": {pod.Container{Env: []string{"PATH=/bin"}}, false, []string{"PATH=/bin"}},
		"keys, which win over the image, and are seen by what follows": {pod.Container{Env: []string{"PATH=/bin", "C=image"}, Vars: []pod.EnvVar{key("C", web), key("P", secret), {Name: "D", Value: "$(C)-$(P)-$(PATH)"}}},
			false, []string{"PATH=/bin", "C=blue", "P=hush", "D=blue-hush-$(PATH)"}},
		"all keys of objects, without what is binary": {pod.Container{EnvFrom: []pod.EnvFrom{{Kind: pod.KindConfigMap, Name: "web", Prefix: "W_"}}, Vars: []pod.EnvVar{{Name: "W_color", Value: "mine"}, {Name: "X", Value: "$(W_a.b)"}}},
			false, []string{"W_REF=$(color)", "W_a.b=dots", "W_color=mine", "X=dots"}},
		"text is not expanded": {pod.Container{Vars: []pod.EnvVar{{Name: "A", Value: "a"}, {Name: "T", From: &pod.EnvRef{Text: &text}}}}, false, []string{"A=a", "T=$(A)"}},
		"fields":               {pod.Container{Vars: []pod.EnvVar{{Name: "IP", From: &pod.EnvRef{Field: "status.podIP"}}}}, false, []string{"IP=<status.podIP>"}},
		"optional ones that are missing": {pod.Container{
			EnvFrom: []pod.EnvFrom{{Kind: pod.KindSecret, Name: "none", Optional: true}},
			Vars: []pod.EnvVar{{Name: "K", Value: "before"}, key("K", pod.KeyRef{Kind: pod.KindConfigMap, Name: "web", Key: "none", Optional: true}),
				key("L", pod.KeyRef{Kind: pod.KindConfigMap, Name: "none", Key: "k", Optional: true}), file("f", "none", true)}}, false, []string{"K=before"}},
		"files":          {pod.Container{Vars: []pod.EnvVar{file("f", "B", false)}}, false, []string{"F=two\nlines"}},
		"no object":      {pod.Container{Vars: []pod.EnvVar{key("K", pod.KeyRef{Kind: pod.KindConfigMap, Name: "none", Key: "k"})}}, false, []string{`!configmap "none" not found`}},
		"no secret":      {pod.Container{EnvFrom: []pod.EnvFrom{{Kind: pod.KindSecret, Name: "none"}}}, false, []string{`!secret "none" not found`}},
		"no key":         {pod.Container{Vars: []pod.EnvVar{key("K", pod.KeyRef{Kind: pod.KindSecret, Name: "key", Key: "k"})}}, false, []string{`!couldn't find key k in Secret ns/key`}},
		"a binary key":   {pod.Container{Vars: []pod.EnvVar{key("K", pod.KeyRef{Kind: pod.KindConfigMap, Name: "web", Key: "blob"})}}, false, []string{`!couldn't find key blob in ConfigMap ns/web`}},
		"a NUL":          {pod.Container{Vars: []pod.EnvVar{key("K", pod.KeyRef{Kind: pod.KindSecret, Name: "key", Key: "nul"})}}, false, []string{`!environment variable K has a NUL byte in its value`}},
		"no file":        {pod.Container{Vars: []pod.EnvVar{file("g", "A", true)}}, false, []string{`!couldn't parse env file: file does not exist`}},
		"no key in file": {pod.Container{Vars: []pod.EnvVar{file("f", "C", false)}}, false, []string{`!environment variable key "C" not found in file "f"`}},
		"services, which what is declared wins over and may refer to": {pod.Container{Vars: []pod.EnvVar{{Name: "U", Value: "$(MY_DB_PORT)"}, {Name: "MY_DB_PORT_5432_TCP_PROTO", Value: "x"}}}, true,
			[]string{"U=tcp://10.0.0.7:5432", "MY_DB_PORT_5432_TCP_PROTO=x", "MY_DB_PORT=tcp://10.0.0.7:5432", "MY_DB_PORT_5432_TCP=tcp://10.0.0.7:5432", "MY_DB_PORT_5432_TCP_ADDR=10.0.0.7", "MY_DB_PORT_5432_TCP_PORT=5432", "MY_DB_SERVICE_HOST=10.0.0.7", "MY_DB_SERVICE_PORT=5432"}},
	} {
		test.c.Args = []string{"run"}
		e, err := Resolve(&pod.Plan{Namespace: "ns", ServiceLinks: test.links}, &test.c, sources())
		var got []string
		if err != nil {
			got = []string{"!" + err.Error()}
		} else {
			got = e.Env
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, test.want)
		}
	}
}

func TestArgsAreExpanded(t *testing.T) {
	c := &pod.Container{Args: []string{"$(P)", "$(MY_DB_SERVICE_HOST)", "$$(P)"}, Env: []string{"I=i"},
		Vars: []pod.EnvVar{key("P", pod.KeyRef{Kind: pod.KindSecret, Name: "key", Key: "password"})}}
	e, err := Resolve(&pod.Plan{ServiceLinks: true}, c, sources())
	if err != nil || strings.Join(e.Args, " ") != "hush 10.0.0.7 $(P)" || e.Fixed {
		t.Errorf("%+v %v", e, err)
	}
	c.Args = []string{"$(EMPTY)"}
	c.Vars = append(c.Vars, pod.EnvVar{Name: "EMPTY"})
	if _, err := Resolve(&pod.Plan{}, c, sources()); err == nil {
		t.Error("an empty command was taken")
	}
}

// TestErrorsKeepSecrets: an error about a value does not contain the value.
func TestErrorsKeepSecrets(t *testing.T) {
	from := sources()
	from.File = func(string, string) ([]byte, error) { return []byte("A='ok'\npassword=hush\n"), nil }
	_, err := Resolve(&pod.Plan{}, &pod.Container{Args: []string{"run"}, Vars: []pod.EnvVar{file("f", "B", false)}}, from)
	if err == nil || strings.Contains(err.Error(), "hush") || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v", err)
	}
	from.Object = func(pod.ObjectKind, string) (*pod.Object, error) { return nil, errors.New("disk") }
	if _, err := Resolve(&pod.Plan{}, &pod.Container{EnvFrom: []pod.EnvFrom{{Kind: pod.KindSecret, Name: "x", Optional: true}}}, from); err == nil {
		t.Error("an object that cannot be read was taken for missing")
	}
}
