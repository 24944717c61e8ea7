package cluster

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"strings"
	"testing"
	"time"
)

// TestRotation: a node replaces its client certificate before it expires. A node that was away for longer reports
// that.
func TestRotation(t *testing.T) {
	c := startControlPlane(t, arguments{"kube-controller-manager": {"--cluster-signing-duration=60s"}})
	n := c.startNode(t, "attic")
	path := n.file("data/podrun/node/pki/kubelet-client-current.pem")
	read := func() []byte {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first := read()
	c.waitFor(t, "another certificate", func() bool { return !bytes.Equal(read(), first) })
	if err := c.kubectlCommand("get", "node/attic", "--kubeconfig="+n.file("data/podrun/node/kubeconfig")).Run(); err != nil {
		t.Errorf("with the new certificate: %v", err)
	}
	n.killAgent(t)
	expires := expiryOf(t, read())
	c.waitFor(t, "the certificate has expired", func() bool { return time.Now().After(expires) })
	out, err := n.command(n.args...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "expired on ") || !strings.Contains(string(out), "hint: run podrun node join") {
		t.Errorf("with an expired certificate: %v\n%s", err, out)
	}
}

// expiryOf returns when the certificate in a file ends.
func expiryOf(t *testing.T, text []byte) time.Time {
	t.Helper()
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			t.Fatal("the file has no certificate")
		}
		if block.Type == "CERTIFICATE" {
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			return certificate.NotAfter
		}
	}
}
