// Package kubeserver starts API servers of Kubernetes for tests of this repository on Linux, where the program and etcd
// are: no node, no controller and no scheduler, so nothing happens but what a test asks for.
package kubeserver
