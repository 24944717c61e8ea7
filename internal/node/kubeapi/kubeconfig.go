package kubeapi

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	kubeconfig "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/podrun/podrun/internal/store"
)

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
	var k kubeconfig.Config
	if err := yaml.Unmarshal(data, &k); err != nil {
		return nil, err
	}
	cl, u, err := current(&k)
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
	_, err = NewClient(c)
	return c, err
}

// current returns the cluster and the user of the current context.
func current(k *kubeconfig.Config) (c kubeconfig.Cluster, u kubeconfig.AuthInfo, err error) {
	if k.CurrentContext == "" && len(k.Clusters) == 1 && len(k.AuthInfos) == 0 {
		return k.Clusters[0].Cluster, u, nil
	}
	i := slices.IndexFunc(k.Contexts, func(c kubeconfig.NamedContext) bool { return c.Name == k.CurrentContext })
	if i < 0 {
		return c, u, fmt.Errorf("current-context: %q is not in contexts", k.CurrentContext)
	}
	context := k.Contexts[i].Context
	i = slices.IndexFunc(k.Clusters, func(c kubeconfig.NamedCluster) bool { return c.Name == context.Cluster })
	if i < 0 {
		return c, u, fmt.Errorf("contexts: %s has the cluster %q, which is not in clusters", k.CurrentContext, context.Cluster)
	}
	c = k.Clusters[i].Cluster
	if i = slices.IndexFunc(k.AuthInfos, func(u kubeconfig.NamedAuthInfo) bool { return u.Name == context.AuthInfo }); i < 0 {
		return c, u, fmt.Errorf("contexts: %s has the user %q, which is not in users", k.CurrentContext, context.AuthInfo)
	}
	return c, k.AuthInfos[i].AuthInfo, nil
}

// unsupported returns the first field that is not supported and changes how to connect or to authenticate.
func unsupported(c kubeconfig.Cluster, u kubeconfig.AuthInfo) string {
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
		{"as", u.Impersonate != "" || u.ImpersonateUID != "" || len(u.ImpersonateGroups) > 0 || len(u.ImpersonateUserExtra) > 0},
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
func (f files) certificate(u kubeconfig.AuthInfo) (func() (*tls.Certificate, error), error) {
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
	cluster := kubeconfig.Cluster{Server: c.Server, TLSServerName: c.ServerName, CertificateAuthorityData: c.CA}
	user := kubeconfig.AuthInfo{Token: c.Token, ClientCertificate: certificate, ClientKey: key}
	context := kubeconfig.Context{Cluster: "default-cluster", AuthInfo: "default-auth", Namespace: "default"}
	data, err := yaml.Marshal(kubeconfig.Config{
		Kind:           "Config",
		APIVersion:     "v1",
		Clusters:       []kubeconfig.NamedCluster{{Name: context.Cluster, Cluster: cluster}},
		AuthInfos:      []kubeconfig.NamedAuthInfo{{Name: context.AuthInfo, AuthInfo: user}},
		Contexts:       []kubeconfig.NamedContext{{Name: "default-context", Context: context}},
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
