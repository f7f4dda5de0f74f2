// Package hello is what two nodes say when they meet, and which dialler is let in: the first frame of every connection,
// its two answers, the reasons to refuse one, and which process may speak for an incarnation.
//
// It is pure: the owner of a connection reads the frame and asks. The transport asks on sockets, the simulator on its
// own connections, so that both are let in and refused by the same words. See docs/contributing/transport.md and
// docs/contributing/wire.md.
package hello
