package object

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
)

// environment is the command's: two lines on standard input, and one variable.
func environment() *cmdutil.Env {
	return &cmdutil.Env{In: strings.NewReader("B=2\nHOME\n"), Getenv: func(name string) string { return map[string]string{"HOME": "/root"}[name] }}
}

// TestData: keys and values come from literals, files, directories and lines of variables; no key is given twice.
func TestData(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "text", "b.bin": "\xff", "vars": "# comment\n\n A=1 \nC=x=y\r\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "a.txt")
	for _, tt := range []struct {
		o    createOptions
		want map[string]string
		err  string
	}{
		{createOptions{fromLiteral: []string{"k=v", "l="}}, map[string]string{"k": "v", "l": ""}, ""},
		{createOptions{fromLiteral: []string{"k=a=b"}}, map[string]string{"k": "a=b"}, ""},
		{createOptions{fromFile: []string{file, "x=" + file}}, map[string]string{"a.txt": "text", "x": "text"}, ""},
		{createOptions{fromFile: []string{dir}}, map[string]string{"a.txt": "text", "b.bin": "\xff", "vars": "# comment\n\n A=1 \nC=x=y\r\n"}, ""},
		{createOptions{fromEnvFile: []string{filepath.Join(dir, "vars")}}, map[string]string{"A": "1 ", "C": "x=y"}, ""},
		{createOptions{fromEnvFile: []string{"-"}}, map[string]string{"B": "2", "HOME": "/root"}, ""},
		{createOptions{fromLiteral: []string{"secret"}}, nil, "--from-literal requires KEY=VALUE"},
		{createOptions{fromLiteral: []string{"k=v", "k=w"}}, nil, `the key "k" is given twice`},
		{createOptions{fromLiteral: []string{"a/b=v"}}, nil, `"a/b" is not a valid key name`},
		{createOptions{fromFile: []string{"x=" + dir}}, nil, "cannot give a key name for a directory path"},
		{createOptions{fromFile: []string{"=" + file}}, nil, "--from-file must be FILE or KEY=FILE"},
		{createOptions{fromFile: []string{dir + "/none"}}, nil, "cannot read the value: open " + dir + "/none"},
		{createOptions{fromEnvFile: []string{filepath.Join(dir, "b.bin")}}, nil, "is not valid UTF-8"},
		{createOptions{fromEnvFile: []string{file}}, map[string]string{"text": ""}, ""},
	} {
		tt.o.env = environment()
		data, err := tt.o.data()
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v, want %s", err, tt.err)
			}
			continue
		}
		got := map[string]string{}
		for key, value := range data {
			got[key] = string(value)
		}
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}

// TestConfigMap: a value that is no text is binary data.
func TestConfigMap(t *testing.T) {
	o := &createOptions{env: environment(), fromLiteral: []string{"text=ä", "binary=\xff"}, immutable: true}
	object, err := o.configMap()
	if err != nil {
		t.Fatal(err)
	}
	cm := object.(*corev1.ConfigMap)
	if cm.Data["text"] != "ä" || string(cm.BinaryData["binary"]) != "\xff" || len(cm.Data)+len(cm.BinaryData) != 2 || !*cm.Immutable || cm.Kind != "ConfigMap" {
		t.Errorf("%+v", cm)
	}
}

// TestDeployment: kubectl's object, with a container for each image.
func TestDeployment(t *testing.T) {
	o := &createOptions{words: []string{"web"}, images: []string{"example.org/my_app:1", "nginx"}, replicas: 2, port: 80}
	object, err := o.deployment()
	if err != nil {
		t.Fatal(err)
	}
	d := object.(*appsv1.Deployment)
	var names []string
	for _, c := range d.Spec.Template.Spec.Containers {
		names = append(names, c.Name)
	}
	if *d.Spec.Replicas != 2 || !slices.Equal(names, []string{"my-app", "nginx"}) || d.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort != 80 || !maps.Equal(d.Spec.Selector.MatchLabels, d.Spec.Template.Labels) {
		t.Errorf("%+v", d)
	}
	for want, o := range map[string]createOptions{
		"requires --image":             {},
		"multiple --image options":     {images: []string{"a", "b"}, command: []string{"x"}},
		"must not be negative":         {images: []string{"a"}, replicas: -1},
		"must not be greater than":     {images: []string{"a"}, replicas: 1 << 31},
		"--port must be between 1 and": {images: []string{"a"}, port: 65536},
		"cannot use image A":           {images: []string{"A"}},
	} {
		o.words = []string{"web"}
		if _, err := o.deployment(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestJob: one of an image and a CronJob is required.
func TestJob(t *testing.T) {
	for want, o := range map[string]createOptions{
		"either --image or --from must be specified": {},
		"create job requires one --image":            {images: []string{"a", "b"}},
		"cannot specify --from and command":          {from: "cronjob/x", command: []string{"x"}},
		`--from must be cronjob/NAME, not "job/x"`:   {from: "job/x"},
		"cannot use image A":                         {images: []string{"A"}},
	} {
		o.words = []string{"once"}
		if _, err := o.job(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestRegistrySecret(t *testing.T) {
	o := &createOptions{server: "https://example.org", user: "u", password: "p", email: "e"}
	object, err := o.registrySecret()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"auths":{"https://example.org":{"auth":"dTpw","email":"e","password":"p","username":"u"}}}`
	if s := object.(*corev1.Secret); string(s.Data[corev1.DockerConfigJsonKey]) != want || s.Type != corev1.SecretTypeDockerConfigJson {
		t.Errorf("%s", s.Data)
	}
	if _, err := (&createOptions{user: "u"}).registrySecret(); err == nil {
		t.Error("a secret without a password")
	}
}

func TestValidateDelete(t *testing.T) {
	named := []kindnames.Query{{Kind: pod.KindConfigMap, Names: []string{"a"}}}
	all := []kindnames.Query{{Kind: pod.KindConfigMap}}
	words := []string{"cm"}
	for want, o := range map[string]deleteOptions{
		"":                           {words: words, queries: named, grace: -1},
		"either names or -f":         {files: []string{"f"}, words: words},
		"requires a kind and names":  {},
		"no name was specified":      {words: words, queries: all},
		"name cannot be provided":    {words: words, queries: named, chosen: &resource.Selection{}},
		"--now and --grace-period":   {words: words, queries: named, now: true, grace: 3},
		"--force and --grace-period": {words: words, queries: named, force: true, grace: 3},
		"must not be negative":       {words: words, queries: named, grace: -2},
		"unexpected -o output mode":  {words: words, queries: named, grace: -1, format: "yaml"},
	} {
		if err := o.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
