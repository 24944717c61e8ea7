package runpod

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// networks are the words for podrun's own network: default is docker's, the others podman's.
var networks = []string{"", "default", "bridge", "pasta", "private", "slirp4netns"}

// setNetwork sets the network of the Pod.
func (c *Container) setNetwork(value string) error {
	c.network = value
	switch {
	case slices.Contains(networks, value):
	case value == "host":
		c.pod.Spec.HostNetwork = true
	case value == "none":
		c.pod.annotate(podutil.AnnotationNetwork, string(pod.NetworkNone))
	case strings.HasPrefix(value, "container:"):
		return errors.New("containers that share a network are containers of one Pod: write a manifest")
	default:
		return errors.New("use host, none or default: the pods of a user share a network")
	}
	return nil
}

// publish forwards a host port: [IP:][HOST:]CONTAINER[/PROTOCOL], where both ports may be ranges. Without HOST the Pod
// gets a free port of the machine when it starts.
func (c *Container) publish(word string) error {
	p, err := podutil.ParsePublishedPort(word)
	if err != nil {
		return err
	}
	c.Ports, c.publishes = append(c.Ports, p.Ports()...), true
	if p.HostPort == 0 {
		c.pod.annotate(podutil.AnnotationFreeHostPorts, "true")
	}
	return nil
}

// hostname sets the Pod's host name; a name with dots is its whole name.
func (c *Container) hostname(name string) error {
	spec := &c.pod.Spec
	switch {
	case len(validation.IsDNS1123Label(name)) == 0:
		spec.Hostname = name
	case len(validation.IsDNS1123Subdomain(name)) == 0 && len(name) <= 64:
		spec.HostnameOverride = &name
	default:
		return fmt.Errorf("%q is no host name: use small letters, digits, - and dots", name)
	}
	return nil
}

// addHost adds a line of /etc/hosts, NAME[;NAME…]:IP; docker also has = instead of the colon.
func (c *Container) addHost(word string) error {
	i := strings.IndexAny(word, ":=")
	if i < 1 {
		return errors.New("use NAME:IP")
	}
	names, ip := strings.Split(word[:i], ";"), strings.Trim(word[i+1:], "[]")
	if ip == "host-gateway" {
		for _, name := range names {
			c.pod.addToList(podutil.AnnotationHostNames, name)
		}
		c.pod.annotate(podutil.AnnotationHostLoopback, "true")
		return nil
	}
	if _, err := netip.ParseAddr(ip); err != nil {
		return fmt.Errorf("%q is not an IP address", ip)
	}
	spec := &c.pod.Spec
	for j := range spec.HostAliases {
		if spec.HostAliases[j].IP == ip {
			spec.HostAliases[j].Hostnames = append(spec.HostAliases[j].Hostnames, names...)
			return nil
		}
	}
	spec.HostAliases = append(spec.HostAliases, corev1.HostAlias{IP: ip, Hostnames: names})
	return nil
}

// dnsConfig returns the resolver's configuration of the Pod.
func (c *Container) dnsConfig() *corev1.PodDNSConfig {
	if c.pod.Spec.DNSConfig == nil {
		c.pod.Spec.DNSConfig = &corev1.PodDNSConfig{}
	}
	return c.pod.Spec.DNSConfig
}

// dns sets a name server that podrun's resolver queries instead of the host's. A pod in the host's network has no such
// resolver: see Finish.
func (c *Container) dns(value string) error {
	address, err := netip.ParseAddr(value)
	if err != nil || address.IsLoopback() || address.Zone() != "" {
		return fmt.Errorf("%q is not the IP address of a name server that pods reach", value)
	}
	c.pod.servers = append(c.pod.servers, value)
	return nil
}

// addToList adds a word to a list in an annotation of the Pod.
func (p *Pod) addToList(key, word string) {
	if list := p.Annotations[key]; list != "" {
		word = list + "," + word
	}
	p.annotate(key, word)
}

func (c *Container) dnsSearch(value string) error {
	if list := validation.IsDNS1123Subdomain(strings.TrimSuffix(value, ".")); len(list) > 0 {
		return fmt.Errorf("%q is no domain: %s", value, list[0])
	}
	c.dnsConfig().Searches = append(c.dnsConfig().Searches, value)
	return nil
}

func (c *Container) dnsOption(value string) error {
	name, number, ok := strings.Cut(value, ":")
	option := corev1.PodDNSConfigOption{Name: name}
	if ok {
		option.Value = &number
	}
	c.dnsConfig().Options = append(c.dnsConfig().Options, option)
	return nil
}

// label sets a label of the Pod, KEY[=VALUE]. What cannot be a label of Kubernetes is an annotation.
func (c *Container) label(word string) error {
	key, value, _ := strings.Cut(word, "=")
	switch {
	case key == "":
		return fmt.Errorf("%q has no key", word)
	case key == podutil.AnnotationAutoUpdate:
		c.pod.annotate(key+"/"+c.Name, value)
	case len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0:
		if c.pod.Labels == nil {
			c.pod.Labels = map[string]string{}
		}
		c.pod.Labels[key] = value
	case len(validation.IsQualifiedName(strings.ToLower(key))) == 0:
		c.pod.annotate(key, value)
	default:
		return c.pod.keepLabel(key, value)
	}
	return nil
}

// keepLabel adds a label to AnnotationLabels, which keeps labels whose key no annotation can have.
func (p *Pod) keepLabel(key, value string) error {
	labels := map[string]string{}
	if kept := p.Annotations[podutil.AnnotationLabels]; kept != "" {
		if err := json.Unmarshal([]byte(kept), &labels); err != nil {
			return err
		}
	}
	labels[key] = value
	kept, err := json.Marshal(labels)
	p.annotate(podutil.AnnotationLabels, string(kept))
	return err
}
