package image

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/report"
)

// configured gives a store a registries.conf, and drop-ins, of its own.
func configured(t *testing.T, s *testStore, conf string, dropins ...string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s.Config.SystemRegistriesConfPath = write("registries.conf", conf)
	t.Setenv("CONTAINERS_REGISTRIES_CONF", s.Config.SystemRegistriesConfPath) // the store looks there for changes
	s.Config.SystemRegistriesConfDirPath = filepath.Join(dir, "d")
	s.Config.UserShortNameAliasConfPath = filepath.Join(dir, "aliases.conf")
	for i, text := range dropins {
		write(filepath.Join("d", string(rune('a'+i))+".conf"), text)
	}
}

func TestShortNames(t *testing.T) {
	const search = "unqualified-search-registries = [\"one.example\", \"two.example:5000\"]\n"
	for name, tt := range map[string]struct {
		conf, dropin, ref, want, err string
	}{
		"nothing said":         {"", "", "busybox", "docker.io/library/busybox:latest", ""},
		"path":                 {"", "", "team/web:1", "docker.io/team/web:1", ""},
		"with a registry":      {search, "", "three.example/x", "three.example/x:latest", ""},
		"localhost":            {search, "", "localhost/x:1", "localhost/x:1", ""},
		"searched":             {search, "", "web:1", "one.example/web:1 two.example:5000/web:1", ""},
		"searched, digest":     {"unqualified-search-registries = [\"one.example\"]\n", "", "web@sha256:" + hexOf(1), "one.example/web@sha256:" + hexOf(1), ""},
		"permissive":           {search + "short-name-mode = \"permissive\"\n", "", "web", "one.example/web:latest two.example:5000/web:latest", ""},
		"disabled":             {search + "short-name-mode = \"disabled\"\n", "", "web", "one.example/web:latest two.example:5000/web:latest", ""},
		"enforcing, several":   {search + "short-name-mode = \"enforcing\"\n", "", "web", "", "one.example/web:latest or two.example:5000/web:latest"},
		"enforcing, one":       {"unqualified-search-registries = [\"one.example\"]\nshort-name-mode = \"enforcing\"\n", "", "web", "one.example/web:latest", ""},
		"enforcing, alias":     {search + "short-name-mode = \"enforcing\"\n[aliases]\nweb = \"three.example/team/web\"\n", "", "web:2", "three.example/team/web:2", ""},
		"alias in a drop-in":   {search, "[aliases]\nweb = \"three.example/team/web\"\n", "web", "three.example/team/web:latest", ""},
		"docker.io among them": {"unqualified-search-registries = [\"docker.io\"]\n", "", "busybox", "docker.io/library/busybox:latest", ""},
		"broken":               {"[[", "", "busybox", "", "registries.conf"},
		"unknown mode":         {search + "short-name-mode = \"whatever\"\n", "", "busybox", "", "whatever"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			var dropins []string
			if tt.dropin != "" {
				dropins = append(dropins, tt.dropin)
			}
			configured(t, s, tt.conf, dropins...)
			names, err := s.ResolveShortName(tt.ref)
			if tt.err != "" {
				wantError(t, err, tt.err)
				if report.Hint(err) == "" {
					t.Error("no hint")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range names {
				got = append(got, n.String())
			}
			if all := strings.Join(got, " "); all != tt.want {
				t.Errorf("%s, want %s", all, tt.want)
			}
		})
	}
}

// TestPullShortName pulls from the second of two registries, and finds the image by its short name
// afterwards, without the network.
func TestPullShortName(t *testing.T) {
	l := newLayout(t).add(img{Name: "busybox", Layers: [][]byte{layerTar(t, f{Name: "x"})}})
	_, repo := newFake(t, l)
	host, _, _ := strings.Cut(repo, "/")
	s := newStore(t)
	configured(t, s, `unqualified-search-registries = ["127.0.0.1:1", "`+host+`"]`)
	if _, err := s.Resolve("x"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("before: %v", err)
	}
	got, err := s.Pull(context.Background(), "x", api.PullOptions{})
	if err != nil || got.Name != repo+":latest" {
		t.Fatalf("%+v, %v", got, err)
	}
	if again, err := s.Resolve("x"); err != nil || again.ID != got.ID {
		t.Errorf("%+v, %v", again, err)
	}
	load(t, s, l.path()) // docker.io/library/busybox, wherever short names are searched
	if _, err := s.Resolve("busybox"); err != nil {
		t.Error(err)
	}
	configured(t, s, "[[")
	if _, err := s.Resolve("busybox"); err != nil {
		t.Errorf("with a broken registries.conf: %v", err)
	}
	_, err = s.Pull(context.Background(), "nosuch", api.PullOptions{})
	wantError(t, err, "registries.conf")
}

// TestPullThroughRegistriesConf: a mirror is asked first, and what it does not have is fetched from the
// registry itself; a blocked registry is not asked; an insecure one may use HTTP.
func TestPullThroughRegistriesConf(t *testing.T) {
	l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}})
	mirror, mirrorRepo := newFake(t, l)
	origin, originRepo := newFake(t, l)
	mirrorHost, _, _ := strings.Cut(mirrorRepo, "/")
	originHost, _, _ := strings.Cut(originRepo, "/")
	verify := true
	strict := api.PullOptions{TLSVerify: &verify}
	conf := "[[registry]]\nlocation = \"" + originHost + "\"\ninsecure = true\n"
	asked := func(fk *fake) (n int) {
		fk.asked.Range(func(any, any) bool { n++; return true })
		fk.asked.Clear()
		return n
	}
	t.Run("mirror", func(t *testing.T) {
		s := newStore(t)
		configured(t, s, conf+"[[registry.mirror]]\nlocation = \""+mirrorHost+"\"\ninsecure = true\n")
		got, err := s.Pull(context.Background(), originRepo, api.PullOptions{})
		if err != nil || got.Name != originRepo+":latest" {
			t.Fatalf("%+v, %v", got, err)
		}
		if asked(mirror) == 0 || asked(origin) > 0 {
			t.Error("it was not the mirror alone that was asked")
		}
	})
	t.Run("mirror is down", func(t *testing.T) {
		s := newStore(t)
		configured(t, s, conf+"[[registry.mirror]]\nlocation = \"127.0.0.1:1\"\n")
		if _, err := s.Pull(context.Background(), originRepo, api.PullOptions{}); err != nil || asked(origin) == 0 {
			t.Error(err)
		}
	})
	t.Run("insecure in a drop-in", func(t *testing.T) {
		s := newStore(t)
		configured(t, s, "", conf)
		if _, err := s.Pull(context.Background(), originRepo, api.PullOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("not insecure", func(t *testing.T) {
		s := newStore(t)
		configured(t, s, "")
		_, err := s.Pull(context.Background(), originRepo, strict)
		wantError(t, err, "HTTP")
	})
	t.Run("blocked", func(t *testing.T) {
		asked(origin)
		s := newStore(t)
		configured(t, s, "[[registry]]\nlocation = \""+originHost+"\"\nblocked = true\n")
		_, err := s.Pull(context.Background(), originRepo, api.PullOptions{})
		wantError(t, err, "blocked")
		if asked(origin) > 0 {
			t.Error("it was asked")
		}
	})
}
