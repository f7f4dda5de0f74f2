//go:build !linux

// Network namespaces are Linux's.

package chaos

func newNamespaces(int, int) (faultDriver, error) { return nil, errNetns }
