// Package cluster tests the manifests against Kubernetes itself: the API
// server's validation and admission, and the controllers, the scheduler and
// autoscaled roll-outs on simulated nodes. It contains only tests.
package cluster
