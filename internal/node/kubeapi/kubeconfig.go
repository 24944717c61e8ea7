package kubeapi

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/podrun/podrun/internal/store"
)

// kubeconfig is the part of a kubeconfig file that is used, or refused (client-go: tools/clientcmd/api/v1/types.go).
type kubeconfig struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	Clusters       []namedCluster `json:"clusters"`
	Users          []namedUser    `json:"users"`
	Contexts       []namedContext `json:"contexts"`
	CurrentContext string         `json:"current-context"`
}

type namedCluster struct {
	Name    string  `json:"name"`
	Cluster cluster `json:"cluster"`
}

type namedUser struct {
	Name string `json:"name"`
	User user   `json:"user"`
}

type namedContext struct {
	Name    string      `json:"name"`
	Context userContext `json:"context"`
}

type cluster struct {
	Server                   string `json:"server,omitempty"`
	TLSServerName            string `json:"tls-server-name,omitempty"`
	CertificateAuthority     string `json:"certificate-authority,omitempty"`
	CertificateAuthorityData []byte `json:"certificate-authority-data,omitempty"`
	InsecureSkipTLSVerify    bool   `json:"insecure-skip-tls-verify,omitempty"`
	ProxyURL                 string `json:"proxy-url,omitempty"`
}

type user struct {
	Token                 string `json:"token,omitempty"`
	TokenFile             string `json:"tokenFile,omitempty"`
	ClientCertificate     string `json:"client-certificate,omitempty"`
	ClientCertificateData []byte `json:"client-certificate-data,omitempty"`
	ClientKey             string `json:"client-key,omitempty"`
	ClientKeyData         []byte `json:"client-key-data,omitempty"`
	Exec                  any    `json:"exec,omitempty"`
	AuthProvider          any    `json:"auth-provider,omitempty"`
	Username              string `json:"username,omitempty"`
	Password              string `json:"password,omitempty"`
	As                    string `json:"as,omitempty"`
}

type userContext struct {
	Cluster   string `json:"cluster"`
	User      string `json:"user"`
	Namespace string `json:"namespace,omitempty"`
}

// LoadKubeconfig reads the current context of a kubeconfig file. Relative paths in it start at its directory; data
// takes precedence over files, and a token file over a token, as for kubectl. The files of the client certificate
// are read for each connection, the other files once. An error names the field that is missing or not supported.
func LoadKubeconfig(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	c, err := parse(data, files{dir: filepath.Dir(path), allowed: true})
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", path, err)
	}
	return c, nil
}

// ParseKubeconfig reads a kubeconfig that is not a file, and therefore may not name files. Without a current context
// it takes the only cluster: kubeadm publishes such a kubeconfig in cluster-info.
func ParseKubeconfig(data []byte) (*Config, error) { return parse(data, files{}) }

func parse(data []byte, f files) (*Config, error) {
	var k kubeconfig
	if err := yaml.Unmarshal(data, &k); err != nil {
		return nil, err
	}
	cl, u, err := k.current()
	if err != nil {
		return nil, err
	}
	if field := unsupported(cl, u); field != "" {
		return nil, fmt.Errorf("%s is not supported", field)
	}
	c := &Config{Server: cl.Server, ServerName: cl.TLSServerName, Token: u.Token}
	if c.CA, err = f.content("certificate-authority", cl.CertificateAuthorityData, cl.CertificateAuthority); err != nil {
		return nil, err
	}
	if u.TokenFile != "" {
		token, err := f.content("tokenFile", nil, u.TokenFile)
		if err != nil {
			return nil, err
		}
		if c.Token = strings.TrimSpace(string(token)); c.Token == "" {
			return nil, errors.New("tokenFile: it is empty")
		}
	}
	if c.ClientCertificate, err = f.certificate(u); err != nil {
		return nil, err
	}
	if _, err := c.baseURL(); err != nil {
		return nil, err
	}
	if _, err := c.tlsConfig(); err != nil {
		return nil, err
	}
	return c, nil
}

// current returns the cluster and the user of the current context.
func (k *kubeconfig) current() (cluster, user, error) {
	if k.CurrentContext == "" && len(k.Clusters) == 1 && len(k.Users) == 0 {
		return k.Clusters[0].Cluster, user{}, nil
	}
	for _, c := range k.Contexts {
		if c.Name != k.CurrentContext {
			continue
		}
		for _, cl := range k.Clusters {
			if cl.Name != c.Context.Cluster {
				continue
			}
			for _, u := range k.Users {
				if u.Name == c.Context.User {
					return cl.Cluster, u.User, nil
				}
			}
			return cluster{}, user{}, fmt.Errorf("contexts: %s has the user %q, which is not in users", c.Name, c.Context.User)
		}
		return cluster{}, user{}, fmt.Errorf("contexts: %s has the cluster %q, which is not in clusters", c.Name, c.Context.Cluster)
	}
	return cluster{}, user{}, fmt.Errorf("current-context: %q is not in contexts", k.CurrentContext)
}

// unsupported returns the first field that changes how one authenticates, and that podrun does not support.
func unsupported(c cluster, u user) string {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"insecure-skip-tls-verify", c.InsecureSkipTLSVerify},
		{"proxy-url", c.ProxyURL != ""},
		{"exec", u.Exec != nil},
		{"auth-provider", u.AuthProvider != nil},
		{"username", u.Username != ""},
		{"password", u.Password != ""},
		{"as", u.As != ""},
	} {
		if f.set {
			return f.name
		}
	}
	return ""
}

// files reads the files that a kubeconfig in dir names.
type files struct {
	dir     string
	allowed bool
}

// content returns data, or the content of the file if there is none.
func (f files) content(field string, data []byte, file string) ([]byte, error) {
	if len(data) > 0 || file == "" {
		return data, nil
	}
	if !f.allowed {
		return nil, fmt.Errorf("%s: a file is not supported here", field)
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(f.dir, file)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return data, nil
}

// certificate returns a function that reads the user's client certificate; nil if there is none.
func (f files) certificate(u user) (func() (*tls.Certificate, error), error) {
	hasCert := u.ClientCertificate != "" || len(u.ClientCertificateData) > 0
	hasKey := u.ClientKey != "" || len(u.ClientKeyData) > 0
	switch {
	case !hasCert && !hasKey:
		return nil, nil
	case !hasKey:
		return nil, errors.New("client-key is missing, and there is a client-certificate")
	case !hasCert:
		return nil, errors.New("client-certificate is missing, and there is a client-key")
	}
	read := func() (*tls.Certificate, error) {
		cert, err := f.content("client-certificate", u.ClientCertificateData, u.ClientCertificate)
		if err != nil {
			return nil, err
		}
		key := cert // one file for both must be read once, because it may be replaced in between
		if len(u.ClientKeyData) > 0 || len(u.ClientCertificateData) > 0 || u.ClientKey != u.ClientCertificate {
			if key, err = f.content("client-key", u.ClientKeyData, u.ClientKey); err != nil {
				return nil, err
			}
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("client-certificate and client-key: %w", err)
		}
		return &pair, nil
	}
	if _, err := read(); err != nil {
		return nil, err
	}
	return read, nil
}

// WriteKubeconfig writes a kubeconfig like the kubelet's, with mode 0600: the server, its certificate authorities as
// data, the token if there is one, and the paths of a client certificate and its key, which may be empty
// (kubelet: pkg/kubelet/certificate/bootstrap/bootstrap.go writeKubeconfigFromBootstrapping).
func (c *Config) WriteKubeconfig(path, certificate, key string) error {
	data, err := yaml.Marshal(kubeconfig{
		APIVersion:     "v1",
		Kind:           "Config",
		Clusters:       []namedCluster{{"default-cluster", cluster{Server: c.Server, TLSServerName: c.ServerName, CertificateAuthorityData: c.CA}}},
		Users:          []namedUser{{"default-auth", user{Token: c.Token, ClientCertificate: certificate, ClientKey: key}}},
		Contexts:       []namedContext{{"default-context", userContext{"default-cluster", "default-auth", "default"}}},
		CurrentContext: "default-context",
	})
	if err != nil {
		return fmt.Errorf("encode the kubeconfig: %w", err)
	}
	if err := store.WriteFile(path, data); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}
