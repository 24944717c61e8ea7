package controlplane

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/podrun/podrun/internal/node/kubeapi"
)

//go:embed rights.yaml
var rights []byte

// localStorage is the default StorageClass, whose volumes the nodes make. It is for other clusters, too.
//
//go:embed local-storage.yaml
var localStorage []byte

// metricsServerImage is the image in metricsServer.
const metricsServerImage = "registry.k8s.io/metrics-server/metrics-server:v0.9.0"

//go:embed metrics-server.yaml
var metricsServer []byte

// ApplyAddons applies what a cluster has from the start. It may be repeated.
func (c Cluster) ApplyAddons(ctx context.Context, client *kubeapi.Client) error {
	info, err := c.clusterInfo()
	if err != nil {
		return err
	}
	err = errors.Join(apply(ctx, client, rights), apply(ctx, client, info), apply(ctx, client, localStorage))
	if c.MetricsServer {
		err = errors.Join(err, apply(ctx, client, metricsServer))
	}
	return err
}

// clusterInfo returns the ConfigMap by which machines that join verify the API server. The controller manager adds the
// signatures of tokens (kubeadm: cmd/kubeadm/app/phases/bootstraptoken/clusterinfo).
func (c Cluster) clusterInfo() ([]byte, error) {
	ca, err := os.ReadFile(c.Authority())
	if err != nil {
		return nil, fmt.Errorf("read the authority of the cluster: %w", err)
	}
	config, err := kubeapi.ClusterKubeconfig(c.Server(), ca)
	if err != nil {
		return nil, err
	}
	return json.Marshal(corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: "cluster-info"},
		Data:       map[string]string{"kubeconfig": string(config)},
	})
}

// apply applies the objects of a manifest, in their order, as kubectl apply --server-side does. It is for manifests that
// podrun makes itself: the name of a resource is the plural of the kind.
func apply(ctx context.Context, client *kubeapi.Client, manifest []byte) error {
	for _, document := range bytes.Split(manifest, []byte("\n---\n")) {
		text, err := yaml.YAMLToJSON(document)
		if err != nil {
			return fmt.Errorf("read a manifest of the cluster: %w", err)
		}
		var o metav1.PartialObjectMetadata
		if err := json.Unmarshal(text, &o); err != nil {
			return fmt.Errorf("read a manifest of the cluster: %w", err)
		}
		if err := client.Patch(ctx, objectPath(&o)+"?fieldManager=podrun&force=true", types.ApplyYAMLPatchType, text, nil); err != nil {
			return fmt.Errorf("apply %s %s: %w", o.Kind, o.Name, err)
		}
	}
	return nil
}

// objectPath returns the path of an object.
func objectPath(o *metav1.PartialObjectMetadata) string {
	path := "/apis/" + o.APIVersion
	if !strings.Contains(o.APIVersion, "/") {
		path = "/api/" + o.APIVersion
	}
	if o.Namespace != "" {
		path += "/namespaces/" + url.PathEscape(o.Namespace)
	}
	plural := strings.ToLower(o.Kind) + "s"
	if strings.HasSuffix(o.Kind, "s") {
		plural = strings.ToLower(o.Kind) + "es"
	}
	return path + "/" + plural + "/" + url.PathEscape(o.Name)
}
