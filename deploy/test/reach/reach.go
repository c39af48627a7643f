// Package reach computes from rendered NetworkPolicies which pods may reach
// which, and compares that with the table of the document, in both directions:
// an edge that the table lacks is as wrong as one that the policies lack.
package reach

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/countersign-dev/countersign/deploy/test/rendered"
)

// An Edge is the permission of one pod to open a connection to another.
type Edge struct {
	From, To string
	Port     Port
}

// A Port is a port of TCP or UDP.
type Port struct {
	Number   int
	Protocol corev1.Protocol
}

// String returns 53/udp, or the number alone for TCP.
func (p Port) String() string {
	if p.Protocol == corev1.ProtocolTCP {
		return strconv.Itoa(p.Number)
	}
	return fmt.Sprintf("%d/%s", p.Number, strings.ToLower(string(p.Protocol)))
}

// String returns FROM → TO:PORT.
func (e Edge) String() string { return fmt.Sprintf("%s → %s:%s", e.From, e.To, e.Port) }

// A Peer is a pod, or an address outside the cluster if it has no namespace.
type Peer struct {
	Name      string
	Namespace string
	Labels    map[string]string
	Address   string
	// Ports are the named ports.
	Ports map[int]string
}

func (p Peer) traffic() *matcher.TrafficPeer {
	if p.Namespace == "" {
		return &matcher.TrafficPeer{IP: p.Address}
	}
	return &matcher.TrafficPeer{IP: p.Address, Internal: &matcher.InternalPeer{
		Namespace: p.Namespace, PodLabels: p.Labels,
		NamespaceLabels: map[string]string{corev1.LabelMetadataName: p.Namespace},
	}}
}

// Outsiders are the peers that no combination renders. Those in the cluster have
// addresses that no policy names, except for other.
func Outsiders() []Peer {
	pod := func(name, namespace, address string, labels map[string]string) Peer {
		return Peer{Name: name, Namespace: namespace, Address: address, Labels: labels}
	}
	return []Peer{
		pod("dns", "kube-system", "100.64.1.1", map[string]string{"k8s-app": "kube-dns"}),
		pod("source", "elsewhere", "100.64.1.2", map[string]string{"countersign.dev/source": "true"}),
		pod("ingress", "ingress-nginx", "100.64.1.3", nil),
		pod("prometheus", "monitoring", "100.64.1.4", map[string]string{"app.kubernetes.io/name": "prometheus"}),
		pod("otlp", "observability", "100.64.1.5", map[string]string{"app.kubernetes.io/name": "opentelemetry-collector"}),
		pod("operator", "cnpg-system", "100.64.1.6", map[string]string{"app.kubernetes.io/name": "cloudnative-pg"}),
		pod("cnpg", rendered.Namespace, "100.64.1.7", map[string]string{"cnpg.io/cluster": "countersign-db", "cnpg.io/podRole": "instance"}),
		pod("pooler", rendered.Namespace, "100.64.1.8", map[string]string{"cnpg.io/poolerName": "countersign-db-pooler", "cnpg.io/podRole": "pooler"}),
		pod("other", "elsewhere", "10.244.9.9", nil),
		{Name: "node-dns", Address: "169.254.20.10"},
		{Name: "postgres", Address: "10.20.0.10"},
		{Name: "mail", Address: "10.30.0.25"},
		{Name: "internet", Address: "93.184.216.34"},
		{Name: "metadata", Address: "169.254.169.254"},
	}
}

// Edges returns every edge that the policies of a set allow from or to one of
// its pods. The policies of outsiders are unknown, so edges between two of
// them are left out.
func Edges(t rendered.Typed) ([]Edge, error) {
	for _, p := range t.Policies {
		if len(p.Spec.PolicyTypes) == 0 || p.Namespace == "" {
			return nil, fmt.Errorf("NetworkPolicy/%s: %w", p.Name, errors.New("it names no policyTypes, or has no namespace"))
		}
	}
	policy := matcher.BuildNetworkPolicies(false, t.Policies)
	inside := pods(t)
	peers := slices.Concat(inside, Outsiders())
	var edges []Edge
	for i, from := range peers {
		for j, to := range peers {
			if i == j || i >= len(inside) && j >= len(inside) {
				continue
			}
			for _, port := range probed(t.Policies, inside) {
				allowed := policy.IsTrafficAllowed(&matcher.Traffic{
					Source: from.traffic(), Destination: to.traffic(),
					ResolvedPort: port.Number, ResolvedPortName: to.Ports[port.Number], Protocol: port.Protocol,
				})
				if allowed.IsAllowed() {
					edges = append(edges, Edge{from.Name, to.Name, port})
				}
			}
		}
	}
	return edges, nil
}

// pods returns a peer for each workload.
func pods(t rendered.Typed) []Peer {
	var peers []Peer
	for i, w := range t.Workloads() {
		p := Peer{
			Name: w.Component, Namespace: rendered.Namespace, Labels: w.Template.Labels,
			Address: fmt.Sprintf("100.64.0.%d", i+1), Ports: map[int]string{},
		}
		for _, c := range w.Containers() {
			for _, port := range c.Ports {
				p.Ports[int(port.ContainerPort)] = port.Name
			}
		}
		peers = append(peers, p)
	}
	return peers
}

// probed returns the ports to check: those that policies and pods name, and
// some that nothing here should reach.
func probed(policies []*networkingv1.NetworkPolicy, inside []Peer) []Port {
	seen := map[Port]bool{}
	for _, n := range []int{22, 25, 53, 80, 143, 443, 465, 587, 993, 5432, 6443, 8080, 9090, 10250} {
		seen[Port{n, corev1.ProtocolTCP}] = true
	}
	seen[Port{53, corev1.ProtocolUDP}] = true
	add := func(ports []networkingv1.NetworkPolicyPort) {
		for _, p := range ports {
			protocol := corev1.ProtocolTCP
			if p.Protocol != nil {
				protocol = *p.Protocol
			}
			if p.Port != nil && p.Port.IntVal > 0 {
				seen[Port{int(p.Port.IntVal), protocol}] = true
			}
		}
	}
	for _, policy := range policies {
		for _, rule := range policy.Spec.Ingress {
			add(rule.Ports)
		}
		for _, rule := range policy.Spec.Egress {
			add(rule.Ports)
		}
	}
	for _, p := range inside {
		for n := range p.Ports {
			seen[Port{n, corev1.ProtocolTCP}] = true
		}
	}
	var all []Port
	for p := range seen {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Port) int { return strings.Compare(a.String(), b.String()) })
	return all
}
