package image

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/registry"
	"github.com/podrun/podrun/internal/testenv"
)

// thief is a server beside the registry, on another port of the same host. It can serve the registry's
// content and tokens, and records each credential that it receives.
type thief struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func newThief(t *testing.T, encrypted bool, serve http.HandlerFunc) *thief {
	th := &thief{}
	th.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		th.mu.Lock()
		if a := r.Header.Get("Authorization"); a != "" {
			th.seen = append(th.seen, a)
		}
		if strings.Contains(string(body), "refresh_token") {
			th.seen = append(th.seen, string(body))
		}
		th.mu.Unlock()
		serve(w, r)
	}))
	if encrypted {
		th.StartTLS()
	} else {
		th.Start()
	}
	t.Cleanup(th.Close)
	return th
}

func (th *thief) loot() []string {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.seen
}

// guardTest is a registry that requires a login, and the expected result of a pull from it.
type guardTest struct {
	encrypted, thiefEncrypted bool
	scheme                    string // of the challenge: "basic" or "bearer"
	elsewhere                 string // requests whose path contains this are redirected to the thief
	far                       bool   // the redirect gives the thief's host another name, in a long address
	realm                     bool   // the thief is the token server
	identity                  bool   // the login is an identity token
	want                      string // of the error; "": the pull succeeds
	loot                      bool   // the thief, as a token server, gets the login
}

func (tt guardTest) run(t *testing.T) {
	fk, _ := newFake(t, newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}}))
	th := newThief(t, tt.thiefEncrypted, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/token") {
			fmt.Fprint(w, `{"token":"ticket","access_token":"ticket"}`)
			return
		}
		(&fake{t: t, blobs: fk.blobs, types: fk.types}).ServeHTTP(w, r)
	})
	var self *httptest.Server
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tt.realm && strings.HasPrefix(r.URL.Path, "/token") {
			t.Error("the registry was asked for the token")
		}
		if strings.HasPrefix(r.URL.Path, "/token") {
			if tt.elsewhere == "/token" {
				http.Redirect(w, r, th.URL+r.URL.Path, http.StatusTemporaryRedirect)
				return
			}
			fmt.Fprint(w, `{"token":"ticket"}`)
			return
		}
		user, password, _ := r.BasicAuth()
		if in := user == "me" && password == "secret" || r.Header.Get("Authorization") == "Bearer ticket"; !in {
			realm := self.URL
			if tt.realm {
				realm = th.URL
			}
			challenge := `Basic realm="x"`
			if tt.scheme == "bearer" {
				challenge = fmt.Sprintf(`Bearer realm="%s/token",service="x"`, realm)
			}
			w.Header().Set("WWW-Authenticate", challenge)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if tt.elsewhere != "" && strings.Contains(r.URL.Path, tt.elsewhere) {
			to := th.URL + r.URL.Path
			if tt.far {
				to = strings.Replace(to, "127.0.0.1", "localhost", 1) + "?signature=" + strings.Repeat("x", 3900) // the rest of the header exceeds the buffer
			}
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			return
		}
		fk.ServeHTTP(w, r)
	})
	self = httptest.NewUnstartedServer(handler)
	if tt.encrypted {
		self.StartTLS()
	} else {
		self.Start()
	}
	t.Cleanup(self.Close)
	_, host, _ := strings.Cut(self.URL, "://")
	login := fmt.Appendf(nil, `{"auths":{%q:{"username":"me","password":"secret"}}}`, host)
	if tt.identity {
		login = fmt.Appendf(nil, `{"auths":{%q:{"auth":"bWU6","identitytoken":"secret"}}}`, host)
	}
	_, err := newStore(t).Pull(context.Background(), host+"/x", api.PullOptions{AuthTexts: [][]byte{login}})
	if tt.want == "" && err != nil {
		t.Errorf("the pull failed: %v", err)
	}
	if tt.want != "" {
		wantError(t, err, tt.want)
		if api.IsTransient(err) {
			t.Error("it is tried again")
		}
	}
	if loot := th.loot(); len(loot) > 0 != tt.loot {
		t.Errorf("the other port got %q", loot)
	}
}

// TestLoginsStayAtTheirAddress tests to which addresses a registry can have its login sent.
func TestLoginsStayAtTheirAddress(t *testing.T) {
	const another, plain = "its scheme, host or port is another", "the connection has no TLS"
	for name, tt := range map[string]guardTest{
		"blobs elsewhere":                 {scheme: "basic", elsewhere: "/blobs/"},
		"blobs elsewhere, token":          {scheme: "bearer", elsewhere: "/blobs/"},
		"blobs elsewhere, without TLS":    {scheme: "basic", elsewhere: "/blobs/", encrypted: true},
		"manifest elsewhere":              {scheme: "basic", elsewhere: "/manifests/", want: another},
		"manifest elsewhere, token":       {scheme: "bearer", elsewhere: "/manifests/", want: another},
		"manifest elsewhere, with TLS":    {scheme: "basic", elsewhere: "/manifests/", encrypted: true, thiefEncrypted: true, want: another},
		"manifest elsewhere, lost TLS":    {scheme: "basic", elsewhere: "/manifests/", encrypted: true, want: plain},
		"manifest on another host":        {scheme: "basic", elsewhere: "/manifests/", far: true},
		"manifest on another host, token": {scheme: "bearer", elsewhere: "/manifests/", far: true},
		"tokens of the registry":          {scheme: "bearer"},
		"tokens elsewhere":                {scheme: "bearer", realm: true, loot: true},
		"tokens elsewhere, with TLS":      {scheme: "bearer", realm: true, encrypted: true, thiefEncrypted: true, loot: true},
		"tokens elsewhere, lost TLS":      {scheme: "bearer", realm: true, encrypted: true, want: plain},
		"identity elsewhere":              {scheme: "bearer", realm: true, encrypted: true, thiefEncrypted: true, identity: true, loot: true},
		"identity elsewhere, lost TLS":    {scheme: "bearer", realm: true, encrypted: true, identity: true, want: plain},
		"token server redirects":          {scheme: "bearer", elsewhere: "/token", want: another},
		"token server redirects, no TLS":  {scheme: "bearer", elsewhere: "/token", encrypted: true, want: plain},
	} {
		t.Run(name, tt.run)
	}
}

// TestLongLoginStaysAtItsAddress has a login that is longer than the buffer of a request.
func TestLongLoginStaysAtItsAddress(t *testing.T) {
	thief, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan []byte)
	go func() {
		defer close(got)
		for {
			conn, err := thief.Accept()
			if err != nil {
				return
			}
			all, _ := io.ReadAll(conn)
			conn.Close()
			got <- all
		}
	}()
	registryValue := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, in := r.BasicAuth(); !in {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.Redirect(w, r, "http://"+thief.Addr().String()+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer registryValue.Close()
	_, host, _ := strings.Cut(registryValue.URL, "://")
	login := fmt.Appendf(nil, `{"auths":{%q:{"username":"me","password":%q}}}`, host, strings.Repeat("secret", 1000))
	store, pulled := newStore(t), make(chan error, 1)
	go func() {
		_, err := store.Pull(context.Background(), host+"/x", api.PullOptions{AuthTexts: [][]byte{login}})
		thief.Close()
		pulled <- err
	}()
	for all := range got {
		if strings.Contains(string(all), "Authorization") {
			t.Errorf("the other port got %q", all)
		}
	}
	err = <-pulled
	wantError(t, err, "its scheme, host or port is another")
	if api.IsTransient(err) {
		t.Error("it is tried again")
	}
}

// TestLoginRefusesAPlainTokenServer: podrun login also sends the password.
func TestLoginRefusesAPlainTokenServer(t *testing.T) {
	th := newThief(t, false, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"token":"ticket"}`) })
	r := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token"`, th.URL))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer r.Close()
	_, host, _ := strings.Cut(r.URL, "://")
	file := filepath.Join(t.TempDir(), "auth.json")
	_, err := registry.Login(context.Background(), api.Account{Registry: host, User: "me", Password: "secret"}, api.PullOptions{AuthFile: file})
	wantError(t, err, "the connection has no TLS")
	if loot := th.loot(); len(loot) > 0 {
		t.Errorf("it got %q", loot)
	}
}

// TestBlobWithoutAnEnd pulls blobs that do not end, in each form of an answer: the pull ends, and so does
// the connection.
func TestBlobWithoutAnEnd(t *testing.T) {
	for name, begin := range map[string]func(w http.ResponseWriter){
		"whole": func(http.ResponseWriter) {},
		"range": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/octet-stream")
			w.WriteHeader(http.StatusPartialContent)
		},
		"parts": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "multipart/byteranges; boundary=b")
			w.WriteHeader(http.StatusPartialContent)
			io.WriteString(w, "--b\r\n\r\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			layer := random(t, 1<<20)
			fk, repo := newFake(t, newLayout(t).add(img{Layers: [][]byte{layer}}))
			blob := largest(fk.blobs)
			ended := make(chan int64, 100)
			fk.edit = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, blob) {
					return false
				}
				begin(w)
				n, _ := io.Copy(w, io.MultiReader(strings.NewReader(string(fk.blobs[blob])), endlessSpace{}))
				ended <- n
				return true
			}
			_, err := newStore(t).Pull(context.Background(), repo, api.PullOptions{})
			wantError(t, err, "longer than its")
			if n := <-ended; n > 64<<20 {
				t.Errorf("%d bytes were taken", n)
			}
		})
	}
}
