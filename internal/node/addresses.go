package node

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// notOnInternet are ranges that are as private as those of netip.Addr.IsPrivate: of shared addresses (RFC 6598) and of
// documentation (RFC 5737, RFC 3849).
var notOnInternet = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8::/32"),
}

// maxBroadBits is the maximum length of prefixes that stand for "everything", such as the host's default route.
const maxBroadBits = 4

// checkPrivate refuses a network of a cluster, of at most minBits4 or minBits6, that has addresses of the internet: pods
// of this host would reach what the cluster chooses instead.
func checkPrivate(p netip.Prefix) error {
	if p.Addr().IsPrivate() || slices.ContainsFunc(notOnInternet, func(r netip.Prefix) bool { return r.Bits() <= p.Bits() && r.Contains(p.Addr()) }) {
		return nil
	}
	return fmt.Errorf("%s is in no private range", name(p))
}

// checkNetwork is checkPrivate, and refuses a network to which the host has a route of its own.
func checkNetwork(p netip.Prefix, routes []netip.Prefix) error {
	if err := checkPrivate(p); err != nil {
		return err
	}
	i := slices.IndexFunc(routes, func(r netip.Prefix) bool { return r.Bits() > maxBroadBits && r.Overlaps(p) })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("%s is in a network to which this host has a route: %s", name(p), routes[i].Masked())
}

// name returns a network, or the address if it has only one.
func name(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

// hostRoutes returns the destinations of the host's routes.
func (a *Agent) hostRoutes() ([]netip.Prefix, error) {
	if a.Routes == nil {
		return nil, nil
	}
	return a.Routes()
}

// withSafeAddresses returns the Services whose addresses pods of this host may take for the cluster's; routes are the
// destinations of the host's routes. The error names the other Services.
func withSafeAddresses(all []Service, routes []netip.Prefix) ([]Service, error) {
	var errs []error
	all = slices.DeleteFunc(all, func(s Service) bool {
		for _, text := range s.Spec.ClusterIPs {
			ip, err := netip.ParseAddr(text)
			if err != nil { // it is headless
				continue
			}
			if err := checkNetwork(netip.PrefixFrom(ip, ip.BitLen()), routes); err != nil {
				errs = append(errs, fmt.Errorf("the cluster's Service %s/%s is refused: its address %w", s.Namespace, s.Name, err))
				return true
			}
		}
		return false
	})
	return all, errors.Join(errs...)
}
