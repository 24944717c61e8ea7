package image

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/containers/image/v5/docker/reference"
	"github.com/containers/image/v5/types"
)

// login is one entry of an auth file: for which images it is, and as whom.
type login struct {
	host, path string // of the images; * in the host stands for anything but a dot
	as         types.DockerAuthConfig
}

// CheckLogins says what is wrong with the text of an auth file, if anything. The error
// holds nothing of it.
func CheckLogins(text []byte) error {
	_, err := readLogins(text)
	return err
}

// readLogins reads an auth file, as docker login and podman login write it, or the older
// form without "auths".
func readLogins(text []byte) ([]login, error) {
	type entry struct {
		Auth, Username, Password, IdentityToken string
	}
	var file struct{ Auths map[string]entry }
	if json.Unmarshal(text, &file) != nil || file.Auths == nil {
		if json.Unmarshal(text, &file.Auths) != nil {
			return nil, fmt.Errorf("read logins: they are no JSON of the form {\"auths\": {REGISTRY: {\"auth\": …}}}")
		}
	}
	var list []login
	for registry, e := range file.Auths {
		l := login{as: types.DockerAuthConfig{Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken}}
		l.host, l.path = registryOf(registry)
		if e.Auth != "" {
			plain, err := base64.StdEncoding.DecodeString(e.Auth)
			user, password, ok := strings.Cut(strings.Trim(string(plain), "\x00"), ":")
			if err != nil || !ok {
				return nil, fmt.Errorf("read logins: the auth of %s is no base64 of USER:PASSWORD", l.host)
			}
			l.as.Username, l.as.Password = user, password
		}
		list = append(list, l)
	}
	return list, nil
}

// registryOf takes the key of an auth file apart: a host, perhaps with a path, or the
// address of an API (kubelet: pkg/credentialprovider/keyring.go).
func registryOf(key string) (host, prefix string) {
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

// loginsFor are those of texts of auth files that are for an image, the most particular
// first. What cannot be read is left out: see CheckLogins.
func loginsFor(name reference.Named, texts [][]byte) []types.DockerAuthConfig {
	var fitting []login
	for _, text := range texts {
		list, _ := readLogins(text)
		for _, l := range list {
			if l.fits(reference.Domain(name), reference.Path(name)) {
				fitting = append(fitting, l)
			}
		}
	}
	slices.SortStableFunc(fitting, func(a, b login) int {
		return cmp.Or(cmp.Compare(len(b.path), len(a.path)), cmp.Compare(len(b.host), len(a.host)), strings.Compare(a.as.Username, b.as.Username))
	})
	var as []types.DockerAuthConfig
	for _, l := range fitting {
		if !slices.Contains(as, l.as) {
			as = append(as, l.as)
		}
	}
	return as
}

// fits says whether a login is for the images of a repository: the host's parts between
// dots match one by one, and so does the port; the path is a whole beginning.
func (l login) fits(host, repository string) bool {
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
