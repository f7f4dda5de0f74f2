// Package transport moves frames between nodes over TCP, on gnet event loops.
//
// Every pair of nodes has, in each direction, one control connection and one or more data connections. A connection is
// one-way for the protocol: its dialler writes, its acceptor reads. Only the answer to the hello, and answers to
// heartbeats on a control connection, travel back. Connections are accepted and dialled with package net; the hello
// runs in a goroutine under a deadline; then the socket is enrolled into its loop: the control loop, or one of the data
// loops, the same one for both directions of a peer's connection of one number.
//
// Data goes through a Link: bytes are encoded in place under one small lock, the first append into an idle link wakes
// its loop once without allocating, and the loop writes what has gathered. Credit bounds what is outstanding: a sender
// never has more than a window and one frame beyond it unconsumed, so a slow receiver costs bounded memory on both
// sides. Control mail has a bounded queue of its own connection and may be lost with it.
//
// What is said in a hello, and which nodes are let in, is package hello; which certificate is believed, package trust;
// how a loop runs and sleeps, package loop. What the frames mean is not known here, except hello, heartbeat and credit.
// See docs/contributing/transport.md.
package transport
