package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/node/certs"
	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
)

func nodeNameFlag() cli.Flag {
	return &cli.StringFlag{Name: "node-name", Usage: "the `NAME` of the node, by default the host's"}
}

// checkName returns an error if a name that was given is no name of a node.
func checkName(name string) error {
	if bad := validation.IsDNS1123Subdomain(name); name != "" && len(bad) > 0 {
		return fmt.Errorf("%q is not a valid name of a node: %s", name, bad[0])
	}
	return nil
}

// state is the directory with the node's certificates and the records of its pods. One process uses it.
type state struct {
	dir  string
	lock *store.FileLock
}

// lockTime is how long to wait for the lock: a child that a killed podrun node was about to start may still hold it.
const lockTime = 5 * time.Second

// stateOf returns the directory, without its lock.
func stateOf(dirs store.Dirs) *state { return &state{dir: filepath.Join(dirs.Data, "node")} }

// isRunning reports whether a podrun node uses the directory. The directory must exist.
func (s *state) isRunning() (bool, error) {
	lock, err := store.OpenFileLock(s.lockFile())
	if err != nil {
		return false, err
	}
	defer lock.Close()
	free, err := lock.TryExclusive()
	return !free, err
}

// openState makes the directory, and takes its lock.
func openState(ctx context.Context, dirs store.Dirs) (*state, error) {
	s := stateOf(dirs)
	if err := os.MkdirAll(s.certificates(), 0o700); err != nil {
		return nil, fmt.Errorf("make the node's directory: %w", err)
	}
	lock, err := store.OpenFileLock(s.lockFile())
	if err != nil {
		return nil, err
	}
	free, err := lock.TryExclusive()
	for deadline := time.Now().Add(lockTime); err == nil && !free && time.Now().Before(deadline); free, err = lock.TryExclusive() {
		if err := sleep.For(ctx, 50*time.Millisecond); err != nil {
			lock.Close()
			return nil, err
		}
	}
	if err == nil && !free {
		err = report.New(report.Failure, "stop it first", "another podrun node of this user is running")
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	s.lock = lock
	return s, nil
}

func (s *state) close()               { s.lock.Close() }
func (s *state) certificates() string { return filepath.Join(s.dir, "pki") }
func (s *state) pods() string         { return filepath.Join(s.dir, "pods") }
func (s *state) kubeconfig() string   { return filepath.Join(s.dir, "kubeconfig") }
func (s *state) lockFile() string     { return filepath.Join(s.dir, "lock") }

func errNotJoined() error {
	return report.New(report.Usage, "podrun node join joins one; --kubeconfig names the file of a certificate that you have", "this host has not joined a cluster")
}

// identity has the connection to the cluster and the certificates by which the node and the cluster verify each
// other.
type identity struct {
	config   *kubeapi.Config
	client   *kubeapi.Client
	serving  *certs.Rotator
	rotators []*certs.Rotator
}

// identify finds the node's certificates, and sets its name and its addresses.
func (o *options) identify(ctx context.Context, s *state) (id *identity, err error) {
	o.node.Name = o.name
	if o.node.Name == "" {
		o.node.Name = resource.NodeName()
	}
	id = &identity{}
	n := certs.Node{Dir: s.certificates(), Name: o.node.Name, Report: func(err error) { report.Print(o.env.ErrOut, err) }}
	if o.kubeconfig != "" {
		id.config, err = kubeapi.LoadKubeconfig(o.kubeconfig)
	} else {
		id.config, err = o.joinedConfig(ctx, s, &n, id)
	}
	if err != nil {
		return nil, err
	}
	if id.client, err = kubeapi.NewClient(id.config); err != nil {
		return nil, err
	}
	if o.node.Name = n.Name; n.Name == "" {
		return nil, report.New(report.Usage, "--node-name gives one", "the name of this host is not valid for a node")
	}
	if len(o.node.Addresses) == 0 {
		ip, err := addressTowards(id.config.Server)
		if err != nil {
			return nil, err
		}
		o.node.Addresses = []string{ip}
	}
	if id.serving, err = certs.NewServingRotator(n, time.Now); err != nil {
		return nil, err
	}
	id.serving.SetAddresses(o.node.HostAddresses())
	id.rotators = append(id.rotators, id.serving)
	return id, nil
}

// joinedConfig returns the configuration for the cluster that the node has joined, whose certificate is replaced in
// time. It sets the node's name to the name in the certificate.
func (o *options) joinedConfig(ctx context.Context, s *state, n *certs.Node, id *identity) (*kubeapi.Config, error) {
	config, err := kubeapi.LoadKubeconfig(s.kubeconfig())
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.bootstrap != "":
		token, err := kubeapi.LoadKubeconfig(o.bootstrap)
		if err != nil {
			return nil, err
		}
		if err := certs.Bootstrap(ctx, token, *n, s.kubeconfig()); err != nil {
			return nil, err
		}
		if config, err = kubeapi.LoadKubeconfig(s.kubeconfig()); err != nil {
			return nil, err
		}
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNotJoined()
	case err != nil:
		return nil, err
	}
	name, err := nodeOf(config)
	if err != nil {
		return nil, err
	}
	if o.name != "" && o.name != name {
		return nil, report.New(report.Usage, "omit --node-name", "this host has joined its cluster as node %s, not %s", name, o.name)
	}
	n.Name = name
	client, err := certs.NewClientRotator(*n, time.Now)
	if err != nil {
		return nil, err
	}
	config.ClientCertificate = client.Certificate
	id.rotators = append(id.rotators, client)
	return config, nil
}

// nodeOf returns the node that the client certificate is for.
func nodeOf(c *kubeapi.Config) (string, error) {
	if c.ClientCertificate == nil {
		return "", errors.New("the kubeconfig has no certificate of a node")
	}
	pair, err := c.ClientCertificate()
	if err != nil {
		return "", err
	}
	subject := pair.Leaf.Subject.CommonName
	name, ok := strings.CutPrefix(subject, "system:node:")
	if !ok {
		return "", fmt.Errorf("the node's certificate is for %q, which is no node", subject)
	}
	return name, nil
}
