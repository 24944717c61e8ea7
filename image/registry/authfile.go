package registry

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/containers/image/v5/docker/reference"
	"github.com/containers/image/v5/types"
)

// credential is one entry of an auth file: the images it is for, and the login.
type credential struct {
	host, path string // of the images; * in the host matches anything but a dot
	auth       types.DockerAuthConfig
}

// ValidateAuthFile returns an error if the text of an auth file is invalid. The error contains nothing of
// the text.
func ValidateAuthFile(text []byte) error {
	_, err := parseAuthFile(text)
	return err
}

// parseAuthFile parses an auth file, as docker login and podman login write it, or the older form without
// "auths".
func parseAuthFile(text []byte) ([]credential, error) {
	type entry struct {
		Auth, Username, Password, IdentityToken string
	}
	var file struct{ Auths map[string]entry }
	if json.Unmarshal(text, &file) != nil || file.Auths == nil {
		if json.Unmarshal(text, &file.Auths) != nil {
			return nil, fmt.Errorf("read logins: they are no JSON of the form {\"auths\": {REGISTRY: {\"auth\": …}}}")
		}
	}
	var list []credential
	for registry, e := range file.Auths {
		l := credential{auth: types.DockerAuthConfig{Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken}}
		l.host, l.path = splitRegistryKey(registry)
		if e.Auth != "" {
			plain, err := base64.StdEncoding.DecodeString(e.Auth)
			user, password, ok := strings.Cut(strings.Trim(string(plain), "\x00"), ":")
			if err != nil || !ok {
				return nil, fmt.Errorf("read logins: the auth of %s is no base64 of USER:PASSWORD", l.host)
			}
			l.auth.Username, l.auth.Password = user, password
		}
		list = append(list, l)
	}
	return list, nil
}

// splitRegistryKey splits the key of an auth file: a host, perhaps with a path, or the address of an API
// (kubelet: pkg/credentialprovider/keyring.go).
func splitRegistryKey(key string) (host, prefix string) {
	if !strings.Contains(key, "://") {
		key = "https://" + key
	}
	u, err := url.Parse(key)
	if err != nil {
		return "", ""
	}
	prefix = u.Path
	for _, api := range []string{"/v1", "/v2"} {
		if prefix == api || strings.HasPrefix(prefix, api+"/") {
			prefix = prefix[len(api):]
		}
	}
	host = u.Host
	if slices.Contains([]string{"index.docker.io", "registry-1.docker.io"}, host) {
		host = "docker.io"
	}
	return host, strings.Trim(prefix, "/")
}

// credentialsFor returns the credentials for an image from texts of auth files, the most specific first.
// Unreadable ones are left out: see ValidateAuthFile.
func credentialsFor(name reference.Named, texts [][]byte) []types.DockerAuthConfig {
	var fitting []credential
	for _, text := range texts {
		list, _ := parseAuthFile(text)
		for _, l := range list {
			if l.matches(reference.Domain(name), reference.Path(name)) {
				fitting = append(fitting, l)
			}
		}
	}
	slices.SortStableFunc(fitting, func(a, b credential) int {
		return cmp.Or(cmp.Compare(len(b.path), len(a.path)), cmp.Compare(len(b.host), len(a.host)), strings.Compare(a.auth.Username, b.auth.Username))
	})
	var as []types.DockerAuthConfig
	for _, l := range fitting {
		if !slices.Contains(as, l.auth) {
			as = append(as, l.auth)
		}
	}
	return as
}

// matches reports whether a login is for the images of a repository: the host's parts between dots match one
// by one, and so does the port; the path matches whole elements at the beginning.
func (l credential) matches(host, repository string) bool {
	globs, parts := strings.Split(l.host, "."), strings.Split(host, ".")
	if l.host == "" || len(globs) != len(parts) {
		return false
	}
	for i := range globs {
		if ok, err := path.Match(globs[i], parts[i]); err != nil || !ok {
			return false
		}
	}
	return l.path == "" || repository == l.path || strings.HasPrefix(repository, l.path+"/")
}

// defaultAuthFile returns the auth file if the user names none: "" for the library's own places. Without a
// login session the first of them is below /run/containers, which root's podman makes inaccessible for other
// users; then the user's own file is used instead.
func defaultAuthFile(uid int, home, runtimeDir string, stat func(path string) error) string {
	if uid == 0 || runtimeDir != "" {
		return ""
	}
	if err := stat(filepath.Join("/run/containers", strconv.Itoa(uid), "auth.json")); !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	return filepath.Join(home, ".config", "containers", "auth.json")
}
