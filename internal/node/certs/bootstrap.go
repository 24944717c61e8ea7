package certs

import (
	"context"

	"github.com/podrun/podrun/internal/node/kubeapi"
)

// Node is the node whose certificates are requested, and the directory where they are kept.
type Node struct {
	Name string
	Dir  string // directory that exists; the files have the kubelet's names
	// Report receives what the user should read while a certificate is requested, for example that the request waits
	// for approval. It is called from several goroutines.
	Report func(error)
}

// Names of files, as the kubelet's.
const (
	clientFiles  = "kubelet-client"
	servingFiles = "kubelet-server"
)

// Bootstrap requests the client certificate of a node with a bootstrap token, and writes it and a kubeconfig that
// uses it (kubelet: pkg/kubelet/certificate/bootstrap/bootstrap.go). It waits until the request is approved. If it
// is killed, the next call continues with the same request.
func Bootstrap(ctx context.Context, c *kubeapi.Config, n Node, kubeconfig string) error {
	client, err := kubeapi.NewClient(c)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	f := files{n.Dir, clientFiles}
	if _, err := clientRequest(n.Name).obtain(ctx, client, f, n.Report); err != nil {
		return err
	}
	config := kubeapi.Config{Server: c.Server, CA: c.CA, ServerName: c.ServerName} // without the token
	if err := config.WriteKubeconfig(kubeconfig, f.current(), f.current()); err != nil {
		return err
	}
	return f.forgetKey()
}
