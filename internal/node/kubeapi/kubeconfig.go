package kubeapi

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// kubeconfig is the part of a kubeconfig file that podrun reads and writes (client-go: tools/clientcmd/api/v1).
type kubeconfig struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	CurrentContext string         `json:"current-context"`
	Clusters       []namedCluster `json:"clusters"`
	Users          []namedUser    `json:"users"`
	Contexts       []namedContext `json:"contexts"`
}

type namedCluster struct {
	Name    string  `json:"name"`
	Cluster cluster `json:"cluster"`
}

type cluster struct {
	Server     string `json:"server"`
	CAFile     string `json:"certificate-authority,omitempty"`
	CAData     []byte `json:"certificate-authority-data,omitempty"`
	ServerName string `json:"tls-server-name,omitempty"`
}

type namedUser struct {
	Name string `json:"name"`
	User user   `json:"user"`
}

type user struct {
	Token    string `json:"token,omitempty"`
	CertFile string `json:"client-certificate,omitempty"`
	CertData []byte `json:"client-certificate-data,omitempty"`
	KeyFile  string `json:"client-key,omitempty"`
	KeyData  []byte `json:"client-key-data,omitempty"`
}

type namedContext struct {
	Name    string `json:"name"`
	Context struct {
		Cluster string `json:"cluster"`
		User    string `json:"user"`
	} `json:"context"`
}

// unsupported are the fields of clusters and users that change how the server is reached or trusted, and that podrun
// does not have.
var unsupported = []string{"insecure-skip-tls-verify", "proxy-url", "exec", "auth-provider", "username", "password", "tokenFile", "as"}

// LoadKubeconfig reads the current context of a kubeconfig file. Certificates in files are read again when they change.
func LoadKubeconfig(path string) (*Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	c, err := parseKubeconfig(text, filepath.Dir(path))
	if err != nil {
		return nil, report.New(report.Usage, "", "the kubeconfig %s: %w", path, err)
	}
	return c, nil
}

func parseKubeconfig(text []byte, dir string) (*Config, error) {
	var k kubeconfig
	if err := yaml.Unmarshal(text, &k); err != nil {
		return nil, err
	}
	if k.Kind != "Config" {
		return nil, fmt.Errorf("kind is %q, not Config", k.Kind)
	}
	at := slices.IndexFunc(k.Contexts, func(c namedContext) bool { return c.Name == k.CurrentContext })
	if at < 0 {
		return nil, fmt.Errorf("current-context: there is no context %q", k.CurrentContext)
	}
	context := k.Contexts[at].Context
	inCluster := slices.IndexFunc(k.Clusters, func(c namedCluster) bool { return c.Name == context.Cluster })
	asUser := slices.IndexFunc(k.Users, func(u namedUser) bool { return u.Name == context.User })
	if inCluster < 0 || asUser < 0 {
		return nil, fmt.Errorf("contexts[%d]: there is no cluster %q or no user %q", at, context.Cluster, context.User)
	}
	if err := refuseUnsupported(text, inCluster, asUser); err != nil {
		return nil, err
	}
	cl, u := k.Clusters[inCluster].Cluster, k.Users[asUser].User
	c := &Config{Server: cl.Server, CA: cl.CAData, ServerName: cl.ServerName, Token: u.Token}
	if len(c.CA) == 0 {
		if cl.CAFile == "" {
			return nil, fmt.Errorf("clusters[%d].cluster has no certificate-authority-data", inCluster)
		}
		var err error
		if c.CA, err = os.ReadFile(in(dir, cl.CAFile)); err != nil {
			return nil, fmt.Errorf("certificate-authority: %w", err)
		}
	}
	return c, u.certificate(c, dir)
}

// refuseUnsupported refuses fields that podrun would ignore.
func refuseUnsupported(text []byte, inCluster, asUser int) error {
	var raw struct {
		Clusters []struct {
			Cluster map[string]any `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User map[string]any `json:"user"`
		} `json:"users"`
	}
	if err := yaml.Unmarshal(text, &raw); err != nil {
		return err
	}
	for path, fields := range map[string]map[string]any{
		fmt.Sprintf("clusters[%d].cluster", inCluster): raw.Clusters[inCluster].Cluster,
		fmt.Sprintf("users[%d].user", asUser):          raw.Users[asUser].User,
	} {
		for _, name := range unsupported {
			if v, ok := fields[name]; ok && v != false && v != "" {
				return fmt.Errorf("%s.%s is not supported: use a token or a client certificate, and the certificate authority of the server", path, name)
			}
		}
	}
	return nil
}

// in returns a file of a kubeconfig in dir.
func in(dir, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// certificate sets the client certificate of a configuration.
func (u *user) certificate(c *Config, dir string) error {
	switch {
	case len(u.CertData) > 0:
		pair, err := tls.X509KeyPair(u.CertData, u.KeyData)
		if err != nil {
			return fmt.Errorf("client-certificate-data: %w", err)
		}
		c.ClientCertificate = func() (*tls.Certificate, error) { return &pair, nil }
	case u.CertFile != "":
		c.ClientCertificate = (&certificateFile{cert: in(dir, u.CertFile), key: in(dir, cmp.Or(u.KeyFile, u.CertFile))}).get
		if _, err := c.ClientCertificate(); err != nil {
			return fmt.Errorf("client-certificate: %w", err)
		}
	case u.Token == "":
		return errors.New("the user has neither a token nor a client certificate")
	}
	return nil
}

// certificateFile is a certificate that is read again when its file changes.
type certificateFile struct {
	cert, key string

	mu     sync.Mutex
	loaded *tls.Certificate
	at     time.Time // the file's time of change
}

func (f *certificateFile) get() (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	st, err := os.Stat(f.cert)
	if err != nil {
		return nil, fmt.Errorf("read the client certificate: %w", err)
	}
	if f.loaded != nil && st.ModTime().Equal(f.at) {
		return f.loaded, nil
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, fmt.Errorf("read the client certificate %s: %w", f.cert, err)
	}
	f.loaded, f.at = &pair, st.ModTime()
	return f.loaded, nil
}

// WriteKubeconfig writes a kubeconfig file for a server whose client certificate and key are in one file.
func WriteKubeconfig(path string, c *Config, certificate string) error {
	const name = "default"
	k := kubeconfig{APIVersion: "v1", Kind: "Config", CurrentContext: name}
	k.Clusters = []namedCluster{{name, cluster{Server: c.Server, CAData: c.CA, ServerName: c.ServerName}}}
	k.Users = []namedUser{{name, user{CertFile: certificate, KeyFile: certificate}}}
	k.Contexts = []namedContext{{Name: name}}
	k.Contexts[0].Context.Cluster, k.Contexts[0].Context.User = name, name
	text, err := json.MarshalIndent(&k, "", "  ") // JSON is YAML
	if err != nil {
		return fmt.Errorf("encode the kubeconfig: %w", err)
	}
	if err := store.WriteFile(path, []byte(strings.TrimSpace(string(text))+"\n")); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}
