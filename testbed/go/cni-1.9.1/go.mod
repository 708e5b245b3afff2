module lamina/testbed/cni

go 1.24.2

require github.com/containernetworking/plugins v1.9.1

require (
	github.com/containernetworking/cni v1.3.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/vishvananda/netlink v1.3.1 // indirect
	github.com/vishvananda/netns v0.0.5 // indirect
	golang.org/x/sys v0.35.0 // indirect
)
