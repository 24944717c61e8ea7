// Package credentials reads auth files and the names of registries in them.
package credentials

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/podrun/podrun/image/reference"
	"github.com/podrun/podrun/internal/report"
)

// Login is a login to a registry.
type Login struct{ Username, Password, IdentityToken string }

// credential is one entry of an auth file: the images it is for, and the login.
type credential struct {
	host, path string // of the images; * in the host matches anything but a dot
	login      Login
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
			return nil, fmt.Errorf("read logins: they are not JSON of the form {\"auths\": {REGISTRY: {\"auth\": …}}}")
		}
	}
	var list []credential
	for registry, e := range file.Auths {
		l := credential{login: Login{Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken}}
		l.host, l.path = splitRegistryKey(registry)
		if e.Auth != "" {
			plain, err := base64.StdEncoding.DecodeString(e.Auth)
			user, password, ok := strings.Cut(strings.Trim(string(plain), "\x00"), ":")
			if err != nil || !ok {
				return nil, fmt.Errorf("read logins: the auth of %s is not base64 of USER:PASSWORD", l.host)
			}
			l.login.Username, l.login.Password = user, password
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

// For returns the credentials for an image from texts of auth files, the most specific first.
// Unreadable ones are left out: see ValidateAuthFile.
func For(name reference.Name, texts [][]byte) []Login {
	var fitting []credential
	for _, text := range texts {
		list, _ := parseAuthFile(text)
		for _, l := range list {
			if l.matches(name.Domain, name.Path) {
				fitting = append(fitting, l)
			}
		}
	}
	slices.SortStableFunc(fitting, func(a, b credential) int {
		return cmp.Or(cmp.Compare(len(b.path), len(a.path)), cmp.Compare(len(b.host), len(a.host)), strings.Compare(a.login.Username, b.login.Username))
	})
	var as []Login
	for _, l := range fitting {
		if !slices.Contains(as, l.login) {
			as = append(as, l.login)
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

// RegistryKey validates the name of a registry as the user wrote it, and returns it in the form of auth
// files.
func RegistryKey(registry string) (string, error) {
	const hint = "a registry is named HOST, HOST:PORT or HOST/PATH"
	host, path := splitRegistryKey(registry)
	key := strings.TrimSuffix(host+"/"+path, "/")
	name, err := reference.Parse(host + "/x")
	if err != nil || host == "" {
		return "", report.New(report.Usage, hint, "%q is not a registry", registry)
	}
	if !strings.EqualFold(name.Domain, host) { // in image names it is a path of docker.io
		return "", report.New(report.Usage, hint+"; write "+host+":443", "%q is not a registry: it has neither a dot nor a port", registry)
	}
	if path != "" {
		if _, err := reference.Parse(key); err != nil {
			return "", report.New(report.Usage, hint, "%q is not a registry: %w", registry, err)
		}
	}
	return key, nil
}
