// Package etcdserver starts etcd servers for tests and commands of this repository on Linux, where it is installed.
package etcdserver
